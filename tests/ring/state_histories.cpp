#include "state_histories.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "core/errors.hpp"
#include "ring/check/block_check.hpp"
#include "ring/helper.hpp"
#include "ring/latest.hpp"
#include "ring/recovery.hpp"
#include "ring/topology.hpp"
#include "ring/worker.hpp"
#include "shm/segment.hpp"
#include "shm/sink.hpp"
#include "simulated_process.hpp"

namespace carousel::test {
namespace {

using namespace carousel::ring;

constexpr u64 torn = 0x7061'7274'6961'6c00;
constexpr u32 middle = 1, sink = 2;
using place = std::pair<u32, u32>;  // link, slot

u64 with(u64 state, u64 frame) { return std::rotl((state ^ frame) * 0x9E37'79B9'7F4A'7C15, 29); }

struct work {
    job j;
    enum { filled, submitted, committed } at = filled;
    enum { none, runs, done } device = none;
    u64 value = 0;  ///< what the device has computed
    bool finished = false;
};

struct process {
    incarnation_id incarnation;
    std::unique_ptr<worker> w;
    std::unique_ptr<event_context> context;
    std::unique_ptr<helper> help;
    std::vector<work> jobs;  ///< in the order in which they were begun
    bool zombie = false, exited = false, revoked = false;
};

plan plan_of(const state_options& o) {
    plan p;
    p.pipeline = "states";
    p.stages = {
        {"source", {}, true, o.in_flight}, {"middle", {0}, true, o.in_flight}, {"sink", {1}, false, 2}};
    for (u32 k = 0; k < 2; ++k) {
        stage_plan& s = p.stages[k];
        s.slot_bytes = 256;
        s.window = o.window;
        s.max_attempts = o.tombstones ? 1 : 0;
        if (k == 0 && !o.source) continue;
        s.more = {{s.name + ".state", o.window, 256}};
        s.state = true;
    }
    if (o.sink) {
        p.stages[sink].has_output = p.stages[sink].state = true;
        p.stages[sink].slot_bytes = 256;
        p.stages[sink].window = o.window;
    }
    p.stages[sink].max_attempts = 0;
    p.end = o.frames;
    p.latest_lease_ns = ~u64{0} >> 1U;
    return p;
}

class history {
public:
    explicit history(const state_options& o) : o_(o), random_(o.seed) {
        initialise(*c_, plan_of(o));
        c_->magic.store(shm::control_magic);
        made_ = shm::make_private_block();
        shm::copy_words(*made_, *c_);
        if (!o.owner_commits) c_->stage[middle].flags &= ~shm::stage_flag::owner_commits;
        for (u32 seat = 0; seat < c_->seats; ++seat) start(seat);
        if (o.watched) viewer_ = std::make_unique<latest_reader>(*c_, states(middle), shm::max_incarnations);
    }

    state_outcome run() {
        // The owner may die between two commits of a helper.
        const while_hooked hooked(!o_.owner_commits, [this](crash_point at) {
            if (at == crash_point::help_committed && below(4) == 0) kill(middle);
        });
        u32 kills = o_.kills;
        const u64 limit = 3000 * (o_.frames + 10);
        for (u64 step = 0; step < limit && out_.finding.empty(); ++step) {
            if (finished()) break;
            const u64 dice = below(1000);
            if (dice < o_.kill_rate && kills > 0)
                --kills, kill_one();
            else if (dice < 60)
                supervise();
            else if (dice < 100 && viewer_)
                view();
            else if (process& p = *processes_[below(processes_.size())]; dice < 500)
                run_device(p);
            else
                advance(p);
            if (step % 64 == 0 && o_.owner_commits) check();
        }
        out_.stuck = !all_delivered(*c_);
        if (!out_.stuck) out_.lost = o_.frames - out_.delivered;
        return out_;
    }

private:
    [[nodiscard]] u64 below(u64 n) { return random_() % n; }
    [[nodiscard]] u32 states(u32 stage) const {
        return c_->stage[stage].output_link[c_->stage[stage].outputs - 1];
    }
    [[nodiscard]] static place state_of(worker& w, const job& j) {
        return {w.output(w.outputs() - 1).index(), j.output[w.outputs() - 1].index};
    }

    void start(u32 seat) {
        const u32 before = seat_word::of(load(c_->seat[seat].current)).epoch;
        auto p = std::make_unique<process>();
        p->incarnation = appoint(*c_, seat);
        CAROUSEL_ASSERT(p->incarnation);
        (void)revoke(*c_, seat, 0);  // the incarnation that the words of a fresh block belong to
        (void)revoke(*c_, seat, before);
        CAROUSEL_ASSERT(claim(*c_, p->incarnation) == claim_result::ok);
        const u32 entry = p->incarnation.entry;
        for (u32 k = 0; k < shm::max_slots; ++k) {
            const u32 names[2] = {entry, k};
            std::memcpy(c_->event_handle[entry][k], names, sizeof names);
        }
        c_->entry[entry].events_published.store(1);
        CAROUSEL_ASSERT(go_live(*c_, p->incarnation));
        p->w = std::make_unique<worker>(*c_, seat, entry, p->incarnation.epoch);
        p->context = std::make_unique<event_context>([this](u32 of, u32 slot) { return is_done(of, slot); });
        p->help = std::make_unique<helper>(*c_, *p->context);
        processes_.push_back(std::move(p));
    }

    [[nodiscard]] bool is_done(u32 entry, u32 slot) const {
        for (const auto& p : processes_)
            for (const work& x : p->jobs)
                if (p->incarnation.entry == entry && x.j.output[0].index == slot && x.device != work::done)
                    return false;
        return true;
    }

    // The words are checked between two steps, as the supervisor checks them, but without its processes.
    void check() {
        known_run known;
        known.end = load(c_->end);
        const auto found = check_words(*c_, *made_, known);
        if (!found.empty()) out_.finding = found.front().text();
    }

    // ------------------------------------------------------------------ the device

    /// One step of the device of a process: its oldest work begins or ends.
    void run_device(process& p) {
        if (p.w->outputs() == 0) return;
        std::vector<work*> ready;
        for (work& x : p.jobs)
            if (x.at != work::filled && x.device != work::done) {
                ready.push_back(&x);
                if (o_.waits_for_previous) break;
            }
        if (ready.empty()) return;
        work& x = *ready[below(ready.size())];
        if (x.device == work::none) {
            x.device = work::runs;
            for (u32 k = 0; k < p.w->outputs(); ++k)
                content_[{p.w->output(k).index(), x.j.output[k].index}] = torn;
            return;
        }
        x.device = work::done;
        out_.late_writes += p.zombie ? 1 : 0;
        x.value = computed(p, x);
        if (o_.writes_in_process || !p.w->has_state()) write(p, x);
    }

    [[nodiscard]] u64 computed(process& p, const work& x) {
        u64 value =
            x.j.inputs > 0 ? content_[{p.w->input(0).index(), x.j.input[0].index}] : x.j.ring_sequence;
        if (p.w->has_state()) {
            const u32 ring = state_of(*p.w, x.j).first;
            const u64 before = x.j.previous ? content_[{ring, x.j.previous.index}] : 0;
            if (!x.j.is_tombstone())
                value = with(before, value);
            else
                value = o_.copies_at_tombstone ? before : content_[state_of(*p.w, x.j)];
        }
        return value;
    }

    void write(process& p, const work& x) {
        for (u32 k = 0; k < p.w->outputs(); ++k)
            content_[{p.w->output(k).index(), x.j.output[k].index}] = x.value;
    }

    // ------------------------------------------------------------------ the host

    void advance(process& p) {
        if (p.exited) return;
        const u64 choice = below(6);
        for (u32 k = 0; choice == 0 && !p.zombie && k < p.w->stage().inputs; ++k) p.help->help(p.w->input(k));
        for (u32 k = 0; choice == 1 && k < p.w->outputs(); ++k) p.w->output(k).sweep();
        if (choice <= 3 && begin_one(p)) return;
        if (p.jobs.empty()) return;
        // A frame is submitted before the next one begins.
        work& newest = p.jobs.back();
        if (newest.at == work::filled) return submit(p, newest);
        const bool in_order = o_.commits_in_order || !p.w->has_state();
        work& x = p.jobs[in_order ? 0 : below(p.jobs.size())];
        if (x.at == work::committed) return complete(p, x);
        if (p.w->outputs() == 0) x.device = work::done;
        if (x.device != work::done) return;
        if (!o_.writes_in_process && p.w->has_state() && !x.finished) {
            x.finished = true;
            return write(p, x);
        }
        commit(p, x);
    }

    bool begin_one(process& p) {
        if (p.jobs.size() >= p.w->stage().in_flight) return false;
        if (!p.jobs.empty() && p.jobs.back().at == work::filled) return false;
        for (u32 k = 0; k < p.w->outputs(); ++k)
            if (!p.w->output(k).has_free_slot()) return false;  // fill() would sleep
        work x;
        const outcome o = p.w->begin(x.j, static_cast<u32>(p.jobs.size()));
        if (o == outcome::revoked) leave(p);
        if (o == outcome::closed && p.jobs.empty()) p.exited = true;
        if (o != outcome::ok) return false;
        p.jobs.push_back(x);
        return true;
    }

    void submit(process& p, work& x) {
        if (!p.w->submit(x.j)) return leave(p);
        x.at = work::submitted;
    }

    void commit(process& p, work& x) {
        const bool is_sink = shm::is_sink(p.w->stage());
        const u64 value = is_sink ? content_[{p.w->input(0).index(), x.j.input[0].index}] : 0;
        if (!p.w->commit(x.j)) return leave(p);
        x.at = work::committed;
        if (!is_sink) return;
        deliver(x.j, value);
        if (!o_.sink) return;
        if (!x.j.is_tombstone()) sink_state_ = with(sink_state_, expected_);
        if (x.value != sink_state_) ++out_.wrong;
    }

    void complete(process& p, work& x) {
        if (!p.w->complete(x.j) && !p.zombie) ++out_.spurious;
        p.jobs.erase(p.jobs.begin() + (&x - &p.jobs.front()));
    }

    void leave(process& p) {
        if (!p.zombie) ++out_.spurious;
        p.exited = true;
    }

    void deliver(const job& j, u64 value) {
        if (j.ring_sequence < out_.delivered) ++out_.repeated;
        if (j.ring_sequence > out_.delivered) ++out_.disorder;
        ++out_.delivered;
        const u64 n = j.ring_sequence;
        if (j.is_tombstone()) {
            ++out_.tombstones;
            if (o_.source && j.tombstone_stage == 0) return;  // its source continues from the same state
        } else {
            if (o_.source) source_state_ = with(source_state_, n);
            expected_ = with(expected_, o_.source ? source_state_ : n);
            if (value != expected_) ++out_.wrong;
        }
        if (j.is_tombstone() && o_.source) source_state_ = with(source_state_, n);  // given up by the middle
    }

    void view() {
        const u32 ring = states(middle);
        if (!viewed_) {
            viewed_ = viewer_->acquire();
            if (viewed_) viewed_value_ = content_[{ring, viewed_.index}];
            return;
        }
        const u64 now = content_[{ring, viewed_.index}];
        if (viewer_->release()) {
            ++out_.seen;
            if (now != viewed_value_ || now == torn) ++out_.seen_wrong;
        }
        viewed_ = {};
    }

    // ------------------------------------------------------------------ deaths

    void kill(u32 seat) {
        for (const auto& p : processes_)
            if (p->incarnation.seat == seat && !p->zombie) return end(*p);
    }

    void kill_one() { end(*processes_[below(processes_.size())]); }

    void end(process& p) {
        if (p.zombie || p.exited) return;
        ++out_.kills;
        const incarnation_id dead = p.incarnation;
        const job_census n = census(*c_, dead.seat, dead.epoch);
        p.zombie = true;
        doom(*c_, dead.entry);
        start(dead.seat);
        p.revoked = revoke(*c_, dead.seat, dead.epoch);
        // Attempts are counted once, by the first step of R4 after the death.
        const blame why = o_.tombstones && dead.seat != sink ? blame::own : blame::none;
        if (why == blame::own || below(2) == 0) (void)requeue(*c_, dead.seat, dead.epoch, why, n.in_flight);
    }

    void supervise() {
        for (u32 k = 0; k < c_->links; ++k) link_ref(*c_, k).sweep();
        for (std::size_t k = 0; k < processes_.size();) {
            process& p = *processes_[k];
            if (p.zombie) {
                const incarnation_id& dead = p.incarnation;
                p.revoked = revoke(*c_, dead.seat, dead.epoch) || p.revoked;
                (void)requeue(*c_, dead.seat, dead.epoch, blame::none, 0);
            }
            if (!p.zombie || !p.revoked || below(4) != 0) {
                ++k;
                continue;
            }
            mark_fenced(*c_, p.incarnation.entry);  // from here on it takes no step and writes no byte
            fenced_.push_back(p.incarnation);
            processes_.erase(processes_.begin() + static_cast<long>(k));
        }
        std::erase_if(fenced_, [&](const incarnation_id& dead) {
            (void)requeue(*c_, dead.seat, dead.epoch, blame::none, 0);
            return reclaim(*c_, dead.seat, dead.epoch);
        });
    }

    [[nodiscard]] bool finished() const {
        return all_delivered(*c_) && fenced_.empty() &&
               std::all_of(processes_.begin(), processes_.end(),
                           [](const auto& p) { return p->exited && !p->zombie; });
    }

    state_options o_;
    std::mt19937_64 random_;
    shm::private_block c_ = shm::make_private_block(), made_;
    std::map<place, u64> content_;
    std::vector<std::unique_ptr<process>> processes_;
    std::vector<incarnation_id> fenced_;
    std::unique_ptr<latest_reader> viewer_;
    slot_ref viewed_;
    u64 viewed_value_ = 0, expected_ = 0, source_state_ = 0, sink_state_ = 0;
    state_outcome out_;
};

}  // namespace

state_outcome state_history(const state_options& o) { return history(o).run(); }

}  // namespace carousel::test
