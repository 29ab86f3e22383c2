// seat_keeper: taking over from a dead supervisor, which may have been interrupted between any two of its steps. Nothing is taken
// for granted that the control block does not say. For each seat there may be
//   a process that sits (the seat's current entry, claimed): it goes on; dead by now, it is buried as ever;
//   a current entry that nobody has claimed: withdrawn, so that a process the dead one had just spawned finds no place, and buried
//     as a life without a process: that appoints a fresh successor and hands the words on to it;
//   claimed entries that are not current: their burial had begun (the successor is appointed first) and is gone through again, each
//     step of it may be repeated;
//   standbys: the seat's spare from now on, or its holder, if the dead supervisor fell between the two steps of its promotion
//     (standby.cpp);
//   FENCED entries whose epoch a word still bears: the reclaim behind the fence is missing.
// An adopter is no parent: it learns no exit status. What a stage has noted in its entry counts, else the death is one from outside.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "shm/process_id.hpp"
#include "supervisor/left_run.hpp"
#include "supervisor/mps_domain.hpp"
#include "supervisor/seats.hpp"

namespace carousel::supervisor {

using nlohmann::json;
using ring::entry_state;
using ring::entry_word;

seat_keeper::found seat_keeper::take_over(const json& state, const std::string& run_id) {
    memory_there_ = false;
    for (auto& s : seats_) s->machine.resume(seat_state::starting, now_ns(), 0);  // what start_all() would have come to
    try {
        if (state.is_object()) restore(state);
    } catch (const json::exception& e) {
        say(fmt::format("what the dead supervisor has counted can't be read ({}): restarts and deaths count from here", e.what()));
    }
    found n;
    for (auto& s : seats_) find_lives(*s, run_id, n);
    for (auto& s : seats_) resume_seat(*s);
    remembered_ = nullptr;
    if (domain_ != nullptr && !account_.domain_given_up && !domain_->is_up()) renew_domain("its daemon has not outlived the supervisor");
    restart_clocks(now_ns());
    return n;
}

std::unique_ptr<life> seat_keeper::life_from(seat& s, u32 entry, const std::string& run_id) {
    shm::incarnation& e = c_->entry[entry];
    auto l = std::make_unique<life>();
    if (ring::withdraw(*c_, entry)) {
        const bool was_current = ring::seat_word::of(ring::load(c_->seat[s.index].current)).entry == entry;
        if (!was_current) {  // the dead one fell between the two steps of appoint(): nobody can ever have been told of this entry
            const u64 raw = ring::load(e.identity);
            ring::cas(e.identity, raw, entry_word{}.pack());
            return nullptr;
        }
    }
    // The burial of a current entry begins with the successor's appointment, which takes any FENCED entry that no word names: not
    // this one, or the two would be one and the successor be doomed in the predecessor's place.
    if (const u64 raw = ring::load(e.identity); entry_word::of(raw).state == entry_state::fenced &&
                                                ring::seat_word::of(ring::load(c_->seat[s.index].current)).entry == entry)
        ring::cas(e.identity, raw, entry_word::of(raw).with(entry_state::doomed).pack());
    const entry_word w = entry_word::of(ring::load(e.identity));
    l->who = {s.index, entry, w.epoch};
    l->pid = static_cast<i32>(w.pid);
    l->fenced = w.state == entry_state::fenced;
    l->doomed = w.state == entry_state::doomed || l->fenced;
    if (!l->fenced) l->pidfd = open_claimer(e, run_id);
    l->ended = !l->pidfd;
    l->tool = !setup_->stages[s.stage].prefix.empty();
    l->how.was_ready = ring::load(e.live_since_ns) != 0;
    l->spawned_ns = std::max(ring::load(e.live_since_ns), c_->created_ns);
    l->judged = l->pid == 0;
    const json lives = s.index < remembered_.size() ? remembered_[s.index] : json::array();
    for (const json& r : lives) {
        if (r.value("entry", shm::none) != entry || r.value("epoch", 0U) != w.epoch) continue;
        l->by_hand = r.value("by_hand", false);
        l->tool = r.value("tool", false);
        l->spawned_ns = r.value("spawned_ns", l->spawned_ns);
        l->signalled_ns = r.value("signalled_ns", u64{0});
        l->seen_dead_ns = r.value("seen_dead_ns", u64{0});
        l->user_signal = r.value("user_signal", 0);
        l->by_us = r.value("by_us", false);
        l->counted = r.value("counted", false);
        if (l->counted) l->signalled_ns = 0;  // so is the time that it took to see it
        l->judged = l->judged || r.value("judged", false);
        l->how.outside = r.value("outside", false);
        l->how.asked = r.value("asked", false);
        l->how.deadline = r.value("deadline", false);
    }
    // The generation that the dead supervisor had is the first one here. One that is fenced holds nothing any more.
    const bool client = wants_domain(s) && l->pid != 0 && !l->by_hand;
    l->domain = client ? domain_->generation() : 0;
    l->let_go = l->fenced;
    if (l->pid != 0 && std::find(s.pids.begin(), s.pids.end(), l->pid) == s.pids.end()) {  // spawned since the state was written
        if (!s.pids.empty()) {
            ++s.restarts;
            ++account_.restarts;
        }
        s.pids.push_back(l->pid);
    }
    return l;
}

void seat_keeper::find_lives(seat& s, const std::string& run_id, found& n) {
    const ring::seat_word sits = ring::seat_word::of(ring::load(c_->seat[s.index].current));
    if (sits.entry != shm::none) ring::revoke(*c_, s.index, 0);  // of the very first start, if it came no further than to appoint
    for (u32 k = 0; k < shm::max_incarnations; ++k) {
        const entry_word w = entry_word::of(ring::load(c_->entry[k].identity));
        if (w.state == entry_state::unused || w.seat != s.index) continue;
        if (w.state == entry_state::standby) {
            adopt_spare(s, k, run_id);
            continue;
        }
        const bool current = sits.entry == k && sits.epoch == w.epoch;
        if (!current && w.state == entry_state::fenced && ring::reusable(*c_, k)) continue;
        std::unique_ptr<life> l = life_from(s, k, run_id);
        if (!l) continue;
        if (current && !l->ended) ++n.alive;
        if (current && l->ended && l->pid != 0 && s.machine.state() != seat_state::done) ++n.dead;
        if (current)
            s.now = std::move(l);
        else
            s.gone.push_back(std::move(l));
    }
    if (s.now && s.by_standby) ++n.alive;
    n.spares += s.spare ? 1 : 0;
    // A promotion that was cut between its two steps, and the spare is dead: the seat names an epoch that no process bears. A fresh one
    // now, before any burial hands the dead holder's words on to that epoch, where nobody would ever open them.
    if (!s.now && sits.entry != shm::none) s.heir = ring::appoint(*c_, s.index);
}

void seat_keeper::resume_seat(seat& s) {
    const u64 now = now_ns();
    const seat_state before = s.machine.state();
    for (auto& l : s.gone) {
        ring::doom(*c_, l->who.entry);
        if (l->seen_dead_ns == 0) l->seen_dead_ns = now;
        first_steps(s, *l);
        l->doomed = true;
        l->breaks = breaks_domain(s, *l);
        l->judged = l->judged || (s.now && s.now->pid != 0);  // it has a successor: that was the judgement
        if (l->ended) l->ended_ns = now;
        if (!l->ended) watch_life(s, *l);
    }
    if (s.now && !s.now->ended) {
        life& l = *s.now;
        const bool held = ring::load(c_->seat[s.index].held) != 0;
        s.machine.resume(held ? seat_state::stopped : l.how.was_ready ? seat_state::running : seat_state::starting,
                         s.machine.since_ns(), s.machine.fresh_deaths());
        s.start_wanted = false;
        watch_life(s, l);
        if (l.doomed || l.by_us) {  // it is about to leave, or its replacement had begun
            l.doomed = false;
            bury(s);
        }
        return;
    }
    read_alone(s, s.now ? s.now->pid : 0);
    const bool rests = before == seat_state::down || before == seat_state::failed || before == seat_state::done ||
                       before == seat_state::backoff || before == seat_state::stopping;
    if (s.now) {
        life& l = *s.now;
        l.ended_ns = now;
        if (l.pid != 0 && rests) s.machine.resume(seat_state::starting, now, s.machine.fresh_deaths());  // started since the state was written
        l.doomed = l.fenced = false;  // the burial takes it from the first step on
        const bool unclaimed = l.pid == 0;
        bury(s);
        if (!unclaimed) return;  // the judgement of its death has decided
    }
    // A successor is wanted unless the seat rests, or a death that nobody has judged yet will decide about it.
    if (before == seat_state::stopping) s.machine.on(seat_event::died_outside, now);  // `carousel down STAGE`, nearly done
    if (rests || std::any_of(s.gone.begin(), s.gone.end(), [](const auto& l) { return !l->judged; })) return;
    s.machine.resume(seat_state::starting, now, s.machine.fresh_deaths());
    s.start_wanted = true;
    s.due_ns = 0;
}

std::string seat_keeper::let_return(int connection, const shm::peer& peer, const json& who) {
    const u32 index = who.value("seat", shm::none);
    if (index >= seats_.size()) return "the run has no such seat";
    seat& s = *seats_[index];
    const u32 entry = who.value("entry", shm::none), epoch = who.value("epoch", 0U);
    const auto is_it = [&](const std::unique_ptr<life>& l) {
        const bool same = l && l->who.entry == entry && l->pid == peer.pid && l->connection < 0 && !l->ended;
        return same && (l->who.epoch == epoch || epoch == 0);  // promoted since it wrote this
    };
    const bool spare = is_it(s.spare);
    if (!spare && !is_it(s.now)) return "the seat has a successor already";
    life& l = spare ? *s.spare : *s.now;
    shm::unique_fd output;
    std::vector<int> fds;
    if (!l.tool) {
        if (l.log.fd() >= 0) loop_->forget(l.log.fd());
        l.log = log_pipe::make(output);
        fds.push_back(output.get());
        watch_log(s, l);
    }
    l.connection = connection;
    if (!shm::send_message(connection, json{{"welcome", {{"log", fds.empty() ? -1 : 0}}}}.dump(), fds))
        say(fmt::format("{}: welcoming it back: {}", s.label, errno_text(errno)));
    if (spare) {
        l.standing_by = l.how.was_ready = l.standing_by || who.value("ready", false);
        return "";
    }
    const bool live = entry_word::of(ring::load(c_->entry[l.who.entry].identity)).state == entry_state::live;
    if (live) {
        l.how.was_ready = true;
        if (s.machine.state() == seat_state::starting) s.machine.on(seat_event::ready, now_ns());
    }
    // The kernel has sent a held stage on its way when it lost its parent (SIGHUP, SIGCONT to an orphaned group): held again.
    if (s.machine.state() == seat_state::stopped) shm::signal_pidfd(l.pidfd.get(), SIGSTOP);
    return "";
}

void seat_keeper::is_back(int connection) {
    for (auto& s : seats_)
        for (const life* l : {s->now.get(), s->spare.get()})
            if (l != nullptr && l->connection == connection) read_alone(*s, l->pid);
}

// What a stage has written while it had no reader. Not before it says that it writes elsewhere, or is dead: what came behind the reading
// would be lost.
void seat_keeper::read_alone(seat& s, i32 pid) {
    const std::string path = fmt::format("{}/logs/{}.{}.{}.alone", setup_->directory, setup_->stages[s.stage].name, s.index, pid);
    std::ifstream in(path);
    for (std::string line; in && std::getline(in, line);) s.log->line(pid, line);
    ::unlink(path.c_str());
}

void seat_keeper::memory_is_there() {
    memory_there_ = true;
    for (auto& s : seats_)
        if (s->start_wanted && now_ns() >= s->due_ns) start(*s);
}

std::vector<const seat*> seat_keeper::not_returned() const {
    std::vector<const seat*> out;
    for (const auto& s : seats_)
        if (s->now && s->now->connection < 0 && !s->now->ended) out.push_back(s.get());
    return out;
}

}  // namespace carousel::supervisor
