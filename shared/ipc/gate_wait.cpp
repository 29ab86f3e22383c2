#include "ipc/gate_wait.hpp"

#include "ipc/step.hpp"

// CAROUSEL_BUG_...: omits a rule, for control tests with a seeded bug.

namespace carousel::ipc {
namespace {

void release_permit(gate_wait& w, semaphore s) {
    if (w.held) (void)s.release(*w.held);
    w.held.reset();
}

}  // namespace

void open(gate_wait& w) { w.generation = open_gate(*w.gate, no_deadline_ns); }

void request_permit(gate_wait& w, u64 deadline_ns) {
    w.deadline_ns = deadline_ns;
#ifndef CAROUSEL_BUG_WAITS_WITHOUT_DEADLINE
    w.gate->deadline_ns.store(deadline_ns, std::memory_order_release);
#endif
    at(step::gate_requested);
}

void decide(gate_wait& w, semaphore s, std::optional<permit> got) {
    w.held = got;
    w.decided = true;
    gate_state to = got ? gate_state::granted : gate_state::expired;
#ifndef CAROUSEL_BUG_GRANTS_THE_DROPPED
    if (w.dropped) to = gate_state::closed;
#endif
    const bool closed = close_gate(*w.gate, w.generation, to);
#ifndef CAROUSEL_BUG_KEEPS_LATE_PERMITS
    if (!closed || w.dropped) release_permit(w, s);
#else
    (void)closed;
#endif
}

void drop(gate_wait& w, semaphore s) {
    w.dropped = true;
    if (w.decided) release_permit(w, s);
}

gate_state state_of(const gate_wait& w) {
    const u32 now = w.gate->at.load(std::memory_order_acquire);
    return now >> 2U == w.generation ? state_of(now) : gate_state::closed;
}

}  // namespace carousel::ipc
