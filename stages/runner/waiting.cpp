#include "stages/runner/waiting.hpp"

#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "device/cpu/threads.hpp"
#include "ring/latest.hpp"
#include "shm/doorbell.hpp"
#include "stages/runner/stage_runner.hpp"

namespace carousel::stages {

using telemetry::wait_reason;

namespace {
constexpr u64 uncounted_ns = 1'000'000;  ///< upper bound of uncounted waits, so that metrics lag by no more
}  // namespace

u64 poll_of(const runtime& r) {
    const shm::control_block& c = r.control();
    const u32 cores = device::cpu::usable_cores();
    u32 ends = 0;
    for (u32 k = 0; k < c.stages && k < shm::max_stages; ++k)
        ends += c.stage[k].outputs == 0 ? c.stage[k].seats : 0;
    const bool low = r.attached().depth.latency == latency_request::low;
    if (low && cores > c.seats + ends + 1) return poll_for_low_ns;
    return cores > c.seats + 1 ? poll_ns : 0;
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

// When the stage would idle, it frees slots, commits what its producers have finished, and then sleeps on its
// doorbell.
bool stage_runner::poll_rings() {
    bool changed = false;
    for (u32 k = 0; k < worker_.outputs(); ++k) changed |= worker_.output(k).sweep();
    for (u32 i = 0; i < worker_.stage().inputs; ++i) changed |= helper_.help(worker_.input(i)) > 0;
    return changed;
}

void stage_runner::wait_for_change(u32 seen, wait_reason why, u64 at_most_ns) {
    const u64 began = now_ns();
    const device::profiler_range shown(profiler_, text_of(why));
    bool changed = poll_rings();
    // Polls long only after a change, so that an idle run sleeps.
    const u64 poll = std::min(last_wait_changed_ ? poll_ns_ : std::min(poll_ns_, poll_ns), at_most_ns);
    while (!changed && poll != 0 && now_ns() - began < poll) {
        changed = shm::ticket(worker_.stage().doorbell) != seen || poll_rings();
    }
    if (!changed) {
        for (u32 k = 0; k < worker_.outputs(); ++k)
            ring::revoke_stale_leases(runtime_->control(), worker_.output(k).index(), began);
        changed = shm::wait(worker_.stage().doorbell, seen, std::min(at_most_ns, shm::max_sleep_ns));
    }
    last_wait_changed_ = changed;
    const u64 now = now_ns();
    u64& waited = waited_ns_[static_cast<std::size_t>(why)];
    waited += now - began;
    if (waited > uncounted_ns) count_waits();
    if (trace_.on(now)) trace_.waiting(why, began, now);
}

// Short waits stay with this thread until it begins a frame, in whose scope they are counted. A crash loses
// them.
void stage_runner::count_waits() {
    const shm::block_open open;
    for (std::size_t why = 0; why < waited_ns_.size(); ++why)
        if (const u64 ns = std::exchange(waited_ns_[why], 0); ns != 0)
            counter_of(worker_.stage().counters, static_cast<wait_reason>(why))
                .fetch_add(ns, std::memory_order_relaxed);
}

}  // namespace carousel::stages
