#include "stages/runner/waiting.hpp"

#include "device/cpu/pool.hpp"

namespace carousel::stages {

using telemetry::wait_reason;

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

}  // namespace carousel::stages
