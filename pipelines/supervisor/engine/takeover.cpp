// engine: a second supervisor. The first one was killed; its stages stream on, hold the memory of all rings,
// and present themselves at the control socket once somebody listens there again. Until the memory is back
// nobody is started; the dead are retired at once.
//
// What this process counts and wants lies in DIR/state.json, written behind each event that changes it, for
// the one after it.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "core/json_text.hpp"
#include "core/read_file.hpp"
#include "ring/link.hpp"
#include "run/directory.hpp"
#include "run/stage_message.hpp"
#include "shm/peer_process.hpp"
#include "supervisor/engine/engine.hpp"
#include "supervisor/processes/adoption.hpp"
#include "supervisor/processes/let_in.hpp"
#include "supervisor/processes/seat_state.hpp"
#include "supervisor/processes/start.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
constexpr u64 memory_patience_ns = 5 * ns_per_s;  // stages look every 50 ms

json read_state(const std::string& folder) { return read_json_file(folder + "/state.json"); }

/// The places that viewers have in latest groups bear numbers that the dead supervisor gave out.
u32 next_tap(const shm::control_block& c) {
    u32 next = 0;
    for (u32 k = 0; k < std::min(c.links, shm::max_links); ++k) {
        for (u32 g = shm::max_blocking; g < shm::max_groups; ++g) {
            const ring::group_word w = ring::group_word::of(ring::load(c.link[k].group_state[g]));
            if (w.state == ring::group_state::latest && w.entry >= shm::max_incarnations)
                next = std::max(next, w.entry - shm::max_incarnations + 1);
        }
    }
    return next;
}

/// A damaged END behind a stop: the number that the file tells, if it is one bit away. Else STOPPING, whether
/// it was or not: the sources have acknowledged, and the same END is found once more.
u64 end_of_stop(u64 damaged, u64 told) noexcept {
    const bool fits = std::popcount(damaged ^ shm::end_word::pack(told)) == 1;
    return fits && told != ring::end_unknown ? told : ring::end_stopping;
}

}  // namespace

void engine::save_state() {
    const u64 print = supervisor::fingerprint(*seats_) ^ static_cast<u64>(phase_) << 40U ^ begun_ns_ ^
                      finished_ns_ << 1U ^ begun_again_ << 2U ^ static_cast<u64>(interrupts_) << 50U ^
                      static_cast<u64>(taken_over_) << 56U ^ started_ns_ ^ end_ << 3U ^ mends_.words << 40U ^
                      mends_.damaged << 44U ^ mends_.stalls << 36U ^ parameters_.number() << 20U ^
                      static_cast<u64>(others_give_the_end_) << 60U;
    if (print == saved_print_) return;
    saved_print_ = print;
    json j = supervisor::state_json(*seats_);
    j["parameters"] = parameters_.state(*made_);
    j["run"] = {{"first", first_},
                {"started_ns", started_ns_},
                {"begun_ns", begun_ns_},
                {"finished_ns", finished_ns_},
                {"begun_again", begun_again_},
                {"asked_to_end", asked_to_end_},
                {"others_give_the_end", others_give_the_end_},
                {"ended_by", ended_by_},
                {"asked_by", asked_by_},
                {"asked_by_signal", asked_by_signal_},
                {"interrupts", interrupts_},
                {"taken_over", taken_over_},
                {"stalls", mends_.stalls},
                {"damaged", mends_.damaged},
                {"words_mended", mends_.words},
                {"end", end_},
                {"stream_ended_by", stream_ended_by_},
                {"beyond_end", mends_.beyond_end}};
    try {
        if (short_since_ns_ != 0) reserve_.give_up();
        run::write_whole_file(setup_->directory + "/state.json",
                              j.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
    } catch (const error& e) {
        if (!state_failed_)
            seats_->say(fmt::format("warning: {}: a second supervisor would count from 0", e.what()));
        state_failed_ = true;
    }
    reserve_.fill();
}

void engine::takeover() {
    shm::control_block& c = segment_->block();
    const u64 now = now_ns();
    c.supervisor.store(static_cast<u64>(::getpid()), std::memory_order_relaxed);
    c.supervisor_heartbeat_ns.store(now, std::memory_order_relaxed);
    const json state = read_state(setup_->directory);
    if (const json run = state.is_object() ? state.value("run", json::object()) : json::object();
        run.is_object()) {
        first_ = run.value("first", u64{0});
        started_ns_ = run.value("started_ns", c.created_ns);
        begun_ns_ = run.value("begun_ns", u64{0});
        finished_ns_ = run.value("finished_ns", u64{0});
        begun_again_ = run.value("begun_again", u64{0});
        asked_to_end_ = run.value("asked_to_end", false);
        others_give_the_end_ = run.value("others_give_the_end", false);
        ended_by_ = run.value("ended_by", 0);
        asked_by_ = run.value("asked_by", "");
        asked_by_signal_ = run.value("asked_by_signal", 0);
        interrupts_ = run.value("interrupts", 0);
        taken_over_ = run.value("taken_over", 0U);
        mends_.stalls = run.value("stalls", u64{0});
        mends_.damaged = run.value("damaged", u64{0});
        mends_.words = run.value("words_mended", u64{0});
        mends_.beyond_end = run.value("beyond_end", u64{0});
        if (ring::load(c.stop_asked) == 0)
            set_end(run.value("end", end_));  // a stop may be younger than the file
        else if (ring::load(c.end) == shm::no_number)
            set_end(end_of_stop(ring::load(c.end.raw()), run.value("end", end_)));
        adopt_stream_end(run.value("stream_ended_by", shm::none));
    }
    if (const std::string said =
            parameters_.adopt(c, *made_, state.is_object() ? state.value("parameters", json()) : json());
        !said.empty())
        seats_->say(said);
    if (!state.is_object()) deaths_then_ = ~u64{0};  // nobody knows how many there were
    ++taken_over_;
    taps_ = next_tap(c);
    if (ring::load(c.stop_asked) != 0) {
        asked_to_end_ = stop_told_ = true;
        phase_ = phase::draining;
        phase_since_ns_ = now;
    }
    moved_ns_ = now;
    taking_over_since_ns_ = now;
    found_ = supervisor::adopt_processes(*seats_, state, run_id_);
    crash_here(crash_point::run_taken_over);
    save_state();
}

// Looked at in each tick.
void engine::watch_takeover(u64 now) {
    if (taking_over_since_ns_ == 0 || phase_ == phase::rebuilding || phase_ == phase::ending) return;
    const bool owner_there = !memory_.has_ipc() || memory_.owner_pidfd() >= 0;
    const auto missing = supervisor::not_returned(*seats_);
    if (memory_.complete() && owner_there) {
        taking_over_since_ns_ = 0;
        memory_.enter(*made_);
        const std::string dead = found_.dead == 0 ? ""
                                                  : fmt::format(", {} {} dead and {} replaced", found_.dead,
                                                                found_.dead == 1 ? "was" : "were",
                                                                found_.dead == 1 ? "is" : "are");
        const std::string standbys =
            found_.standbys == 0
                ? ""
                : fmt::format(", and {} {}", found_.standbys, found_.standbys == 1 ? "standby" : "standbys");
        seats_->say(fmt::format("adopted {}: {} {} alive{}{}", setup_->name, found_.alive,
                                found_.alive == 1 ? "stage" : "stages", standbys, dead));
        supervisor::memory_is_there(*seats_);
        return;
    }
    // A stopped stage gives nothing back before it goes on, and is no reason to end the others: the dead wait
    // for it.
    const bool stopped = std::any_of(missing.begin(), missing.end(),
                                     [](const seat* s) { return shm::is_stopped(s->now->pid); });
    if (!missing.empty() && (stopped || now - taking_over_since_ns_ < memory_patience_ns)) return;
    if (!owner_there && memory_.complete() && now - taking_over_since_ns_ < memory_patience_ns) return;
    taking_over_since_ns_ = 0;
    rebuild(fmt::format("adopted {}, but the memory of its rings is gone with the processes that held it",
                        setup_->name));
    supervisor::memory_is_there(*seats_);
}

// A stage that the dead supervisor had started: its fds first, whatever becomes of it.
std::string engine::take_return(connection& c, const run::return_message& said, shm::message& m) {
    if (said.run_id != run_id_) return "this is another run";
    memory_.take_back(said.memory, m.fds);
    std::string why = supervisor::let_stage_return(*seats_, c.fd.get(),
                                                   shm::peer_process_of(c.fd.get(), said.start_time), said);
    c.stage = why.empty();
    crash_here(crash_point::stage_returned);
    return why;
}

// The process that owns ipc memory has waited for us, too. Its connection is its life line from now on.
void engine::take_owner(connection& c, const run::owner_message& said) {
    const int number = c.fd.get();
    spawned owner;
    shm::peer_process peer = shm::peer_process_of(number, said.start_time);
    owner.pid = peer.id.pid;
    owner.start_time = peer.id.start_time;
    owner.pidfd = std::move(peer.pidfd);
    const bool wanted = said.run_id == run_id_ && memory_.has_ipc() && memory_.owner_pidfd() < 0 &&
                        owner.pidfd && owner.pid > 0;
    (void)shm::send_message(number, (wanted ? run::to_json(run::welcome_message{})
                                            : run::refusal("this run needs no owner of memory"))
                                        .dump());
    if (!wanted) return;
    loop_.forget(number);
    memory_.take_owner(std::move(owner), std::move(c.fd));
    connections_.erase(number);
    watch_owner();
}

}  // namespace carousel::supervisor
