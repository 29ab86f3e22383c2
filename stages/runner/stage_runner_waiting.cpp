// Runs while no frame can begin: the main thread frees slots, commits frames that its producers have
// finished, and then sleeps on its doorbell. A source whose frames come from outside is first asked whether a
// frame is available; a sink whose frames go to another host may wait for that host. These two waits do not
// count as a hang, and neither does the pause of a source with a configured rate. At the end of a source's
// stream the frame that does not exist is given back (E1 and E3 of ring/PROTOCOL.md; E2 is the supervisor's).

#include "stages/runner/stage_runner.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/log.hpp"
#include "device/cpu/pool.hpp"
#include "ring/latest.hpp"
#include "shm/doorbell.hpp"
#include "shm/sink.hpp"
#include "stages/runner/exit_note.hpp"
#include "stages/runner/running_clock.hpp"

namespace carousel::stages {
using telemetry::wait_reason;
namespace {

/// For own_work no wait is shown, because the frames in flight have their own clocks.
ring::wait_kind kind_of(wait_reason why) noexcept {
    switch (why) {
        case wait_reason::input:
            return ring::wait_kind::frame;
        case wait_reason::output:
            return ring::wait_kind::free_slot;
        case wait_reason::turn:
            return ring::wait_kind::turn;
        case wait_reason::own_work:
            break;
    }
    return ring::wait_kind::none;
}

/// Upper bound of the waiting time that is not counted yet; the metrics lag by at most this time.
constexpr u64 uncounted_ns = 1'000'000;

}  // namespace

// When the stage would otherwise be idle, it sweeps its rings, commits frames that its producers have
// finished, and then sleeps on its doorbell.
bool stage_runner::poll_rings() {
    bool changed = false;
    for (u32 k = 0; k < worker_.outputs(); ++k) changed |= worker_.output(k).sweep();
    for (u32 i = 0; i < worker_.stage().inputs; ++i) {
        changed |= helper_.help(worker_.input(i)) > 0;
        // It is possible that this stage never takes the last frames of the input's producer. No later step
        // of this stage would then free the slots of these frames, and the producer may have ended.
        changed |= worker_.input(i).sweep();
    }
    return changed;
}

// `began`: the time when the wait began; it is not used if the same wait is shown already. The entry is
// written only if the shown wait changes, because an idle process wakes up ten times per second. If the
// process dies here, its entry is not read any more. No wait is shown if the next frame has arrived but
// cannot begin, because the predecessor still has its lease, a word is damaged, or ready() has returned
// false.
void stage_runner::show_wait(ring::wait_kind kind, u64 began) {
    const bool at_ring = kind == ring::wait_kind::free_slot ||
                         (kind == ring::wait_kind::frame && worker_.stage().source == shm::none);
    const u32 link = at_ring ? worker_.blocking_link() : shm::none;
    if (at_ring && link == shm::none) kind = ring::wait_kind::none;
    shm::word& at = runtime_->entry().waiting;
    const auto shown = ring::wait_word::of(at.load(std::memory_order_relaxed));
    if (shown.kind == kind && shown.link == link) return;
    const shm::block_open open;
    at.store(ring::wait_word{kind, link, began / ns_per_ms}.pack(), std::memory_order_relaxed);
}

void stage_runner::wait_for_change(u32 seen, wait_reason why, u64 at_most_ns) {
    const u64 began = now_ns();
    const device::profiler_range shown(profiler_, text_of(why));
    bool changed = poll_rings();
    // Polls for the long time only after a change, so that the threads of an idle run sleep.
    const u64 poll = std::min(last_wait_changed_ ? poll_ns_ : std::min(poll_ns_, poll_ns), at_most_ns);
    while (!changed && poll != 0 && now_ns() - began < poll) {
        changed = shm::ticket(worker_.stage().doorbell) != seen || poll_rings();
    }
    if (!changed) {
        show_wait(kind_of(why), began);
        const auto counted = [&](u64 since) {
            return std::max(since, runtime_->supervisor().running().resumed_ns(began));
        };
        for (u32 k = 0; k < worker_.outputs(); ++k)
            ring::revoke_stale_leases(runtime_->control(), worker_.output(k).index(), began, counted);
        changed = shm::wait(worker_.stage().doorbell, seen, std::min(at_most_ns, shm::max_sleep_ns));
    }
    last_wait_changed_ = changed;
    const u64 now = now_ns();
    u64& waited = waited_ns_[static_cast<std::size_t>(why)];
    waited += now - began;
    if (waited > uncounted_ns) count_waits();
    if (trace_.on(now)) trace_.waiting(why, began, now);
}

// This thread accumulates short waits until it begins a frame, and counts them in the block_open scope of
// that frame. A crash loses the waits that are not counted yet.
void stage_runner::count_waits() {
    const shm::block_open open;
    for (std::size_t why = 0; why < waited_ns_.size(); ++why)
        if (const u64 ns = std::exchange(waited_ns_[why], 0); ns != 0)
            counter_of(worker_.stage().counters, static_cast<wait_reason>(why))
                .fetch_add(ns, std::memory_order_relaxed);
}

// Runs on the thread of process(). After this call begin() chooses the sequence again. begin() cannot choose
// a lower sequence, because ready() receives the bound below which all sequences are done, and because this
// seat has only one process.
bool stage_runner::ready(u64 ring_sequence, u32 in_flight) {
    const bool source = worker_.stage().source != shm::none;
    bool there = false;
    guarded("ready", ring_sequence,
            [&] { there = stage_->ready(ring_sequence, source ? worker_.done_below() : 0); });
    wait_for_link(source && !there && in_flight == 0);  // frames in flight have their own clocks
    return there;
}

void stage_runner::wait_for_link(bool waits) {
    if (waits == waits_for_link_) return;
    waits_for_link_ = waits;
    waits ? outside_.begin(shm::pause_reason::link) : outside_.end(shm::pause_reason::link);
}

// A source with a configured rate spaces its claims. The time of the next claim is in the control block, so
// that a successor continues at the same rate. A source that is late catches up by one frame at most.
bool stage_runner::due(u32 seen) {
    shm::control_block& c = runtime_->control();
    const u32 source = worker_.stage().source;  // not a source, or damaged: no such word
    if (c.fps <= 0 || source >= shm::max_sources) return true;
    const u64 next = c.next_source_ns[source].load(std::memory_order_relaxed), now = now_ns();
    if (next <= now) return true;
    const u64 rest = std::min(next - now, shm::max_sleep_ns);
    if (sampled_inputs_)  // also waits for the doorbell, because new frames of sampled inputs ring it
        shm::wait(worker_.stage().doorbell, seen, rest);
    else
        std::this_thread::sleep_for(std::chrono::nanoseconds(rest));
    const u64 woken = now_ns();
    const shm::block_open open;
    // a source waits for its clock as other stages wait for their input, so the time is counted as waiting
    // for input
    worker_.stage().counters.wait_input_ns.fetch_add(woken - now, std::memory_order_relaxed);
    return woken >= next;
}

void stage_runner::paced(u64 claimed_ns) {
    shm::control_block& c = runtime_->control();
    const u32 source = worker_.stage().source;
    if (c.fps <= 0 || source >= shm::max_sources) return;
    const u64 step = static_cast<u64>(1e9 / c.fps);
    shm::word& due = c.next_source_ns[source];
    const u64 planned = due.load(std::memory_order_relaxed) + step;
    const shm::block_open open;
    due.store(std::max(planned, claimed_ns), std::memory_order_relaxed);
}

// The job stays OPEN and no other frame begins until END is known. Then this frame is given back, and the
// frames below END continue. This loop only waits: for the supervisor's next check, or for this stage's
// frames in flight, which have their own clocks.
void stage_runner::end_stream(frame_in_work& f) {
    log::info("the stream ends before frame {}", f.job.ring_sequence);
    turn_.on_idle();
    for (;;) {
        const u32 seen = shm::ticket(worker_.stage().doorbell);
        const ring::outcome result = worker_.end_stream(f.job);
        if (result == ring::outcome::revoked) die(exit_code::revoked);
        if (result == ring::outcome::ok && in_flight() == 1) break;
        wait_for_change(seen, telemetry::wait_reason::own_work, shm::max_sleep_ns);
    }
    {
        // the device has no work that the completion thread could wait for
        const running_clock clock(runtime_->entry().device_since_ns);
        guarded("the device's work", f.job.ring_sequence, [&] { runtime_->queue().drain(); });
    }
    crash_here(crash_point::end_known);
    if (!worker_.give_back(f.job)) die(exit_code::revoked);
    released(f);
}

u64 poll_of(const runtime& r) {
    const shm::control_block& c = r.control();
    const u32 cores = device::cpu::usable_cores();
    u32 ends = 0, states = 0;
    for (u32 k = 0; k < c.stages && k < shm::max_stages; ++k) {
        const bool has_state = (c.stage[k].flags & shm::stage_flag::state) != 0;
        states += has_state ? c.stage[k].seats : 0;
        ends += shm::is_sink(c.stage[k]) && !has_state ? c.stage[k].seats : 0;
    }
    const bool low = r.attached().depth.latency == latency_request::low;
    if (low && cores > c.seats + states + ends + 1) return poll_for_low_ns;
    return cores > c.seats + states + 1 ? poll_ns : 0;
}

wait_reason reason_of(ring::outcome o) noexcept {
    switch (o) {
        case ring::outcome::own_work:
        case ring::outcome::closed:
            return wait_reason::own_work;
        case ring::outcome::full:
            return wait_reason::output;
        default:
            return wait_reason::input;
    }
}

shm::word& counter_of(shm::stage_counters& n, wait_reason why) noexcept {
    switch (why) {
        case wait_reason::own_work:
            return n.wait_own_ns;
        case wait_reason::output:
            return n.wait_output_ns;
        case wait_reason::turn:
            return n.wait_turn_ns;
        case wait_reason::input:
            break;
    }
    return n.wait_input_ns;
}

const char* text_of(wait_reason why) noexcept {
    switch (why) {
        case wait_reason::own_work:
            return "wait for own frames";
        case wait_reason::output:
            return "wait for free slot";
        case wait_reason::turn:
            return "wait for the GPU";
        case wait_reason::input:
            break;
    }
    return "wait for input";
}

}  // namespace carousel::stages
