#include "ipc/gate.hpp"

#include "ipc/step.hpp"

// Each macro CAROUSEL_BUG_... omits one rule, so that control tests can run with a seeded bug.

namespace carousel::ipc {

u32 open_gate(gate& g, u64 deadline_ns) {
#ifndef CAROUSEL_BUG_REOPENS_A_GENERATION
    const u32 generation = ((g.at.load(std::memory_order_acquire) >> 2U) + 1) & 0x3FFFFFFFU;
#else
    const u32 generation = 1;
#endif
#ifdef CAROUSEL_BUG_OPENS_FIRST
    g.at.store(gate_word(generation, gate_state::pending), std::memory_order_release);
    at(step::gate_timed);
#endif
    g.deadline_ns.store(deadline_ns, std::memory_order_release);
    at(step::gate_timed);
    g.at.store(gate_word(generation, gate_state::pending), std::memory_order_release);
    at(step::gate_opened);
    return generation;
}

bool close_gate(gate& g, u32 generation, gate_state to) {
#ifndef CAROUSEL_BUG_CLOSES_BY_STORE
    u32 pending = gate_word(generation, gate_state::pending);
    if (!g.at.compare_exchange_strong(pending, gate_word(generation, to), std::memory_order_acq_rel,
                                      std::memory_order_acquire))
        return false;
#else
    g.at.store(gate_word(generation, to), std::memory_order_release);
#endif
    at(step::gate_closed);
    return true;
}

void close_overdue(gate_row& row, u64 now_ns) {
    for (gate& g : row.of) {
#ifdef CAROUSEL_BUG_READS_DEADLINE_FIRST
        const u64 deadline = load(g.deadline_ns);
        at(step::gate_checked);
#endif
        const u32 w = g.at.load(std::memory_order_acquire);
        if (w == 0 || state_of(w) != gate_state::pending) continue;
#ifndef CAROUSEL_BUG_READS_DEADLINE_FIRST
        at(step::gate_checked);
        const u64 deadline = load(g.deadline_ns);
#endif
        if (deadline >= now_ns || now_ns - deadline <= gate_grace_ns) continue;
        at(step::gate_late);
#ifndef CAROUSEL_BUG_LEAVES_LATE_GATES
        (void)close_gate(g, w >> 2U, gate_state::closed);
#endif
    }
}

}  // namespace carousel::ipc

// Each macro CAROUSEL_BUG_... omits one rule, so that control tests can run with a seeded bug.

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
