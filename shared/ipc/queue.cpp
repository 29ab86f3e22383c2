#include "ipc/queue.hpp"

#include <cstring>

#include "ipc/step.hpp"
#include "ipc/wait_check.hpp"

namespace carousel::ipc {

bool queue::try_push(const void* from) {
    const queue_body<cpu_side> q = body();
    u64 ticket = 0;
    if (!q.claim(ticket)) return false;
#ifdef CAROUSEL_BUG_PUBLISHES_FIRST
    (void)q.publish(ticket);  // seeded bug
    at(step::cell_published);
#endif
    std::memcpy(q.element(ticket), from, b_->element_bytes);
    at(step::cell_written);
#ifndef CAROUSEL_BUG_PUBLISHES_FIRST
    (void)q.publish(ticket);
    at(step::cell_published);
#endif
    shm::ring(b_->bell);
    return true;
}

std::optional<u64> queue::take(cell_state as, void* to) {
    const queue_body<cpu_side> q = body();
    u64 ticket = 0;
    if (!q.take(as, ticket)) return std::nullopt;
    std::memcpy(to, q.element(ticket), b_->element_bytes);
    return ticket;
}

bool queue::try_pop(void* to) {
    const std::optional<u64> ticket = take(cell_state::popping, to);
    if (!ticket || !body().consume(*ticket, cell_state::popping)) return false;
    shm::ring(b_->bell);
    return true;
}

std::optional<lease> queue::try_lease(void* to) {
    const std::optional<u64> ticket = take(cell_state::leased, to);
    return ticket ? std::optional(lease{*ticket}) : std::nullopt;
}

bool queue::commit(const lease& l) {
    if (!body().consume(l.ticket, cell_state::leased)) return false;
    shm::ring(b_->bell);
    return true;
}

bool queue::requeue(const lease& l) {
    if (!body().requeue(l.ticket)) return false;
    shm::ring(b_->bell);
    return true;
}

namespace {

// Repeats `attempt` until it succeeds or the timeout expires. The doorbell's ticket is read before the
// attempt, so a change after the attempt ends the sleep.
template <class Attempt>
auto wait_for(queue_block& b, u64 timeout_ns, Attempt attempt) {
    const u64 deadline = deadline_after(timeout_ns);
    for (;;) {
        const u32 seen = shm::ticket(b.bell);
        if (auto got = attempt()) return got;
        if (!sleep_until(b.bell, seen, deadline))
            return this_thread_wait_check().ended ? decltype(attempt())() : attempt();
    }
}

}  // namespace

bool queue::push(const void* from, u64 timeout_ns) {
    return wait_for(*b_, timeout_ns, [&] { return try_push(from); });
}
bool queue::pop(void* to, u64 timeout_ns) {
    return wait_for(*b_, timeout_ns, [&] { return try_pop(to); });
}
std::optional<lease> queue::lease_one(void* to, u64 timeout_ns) {
    return wait_for(*b_, timeout_ns, [&] { return try_lease(to); });
}

u32 queue::size() const {
    u32 n = 0;
    for (u32 k = 0; k < b_->capacity; ++k)
        n += cell_word::of(load(b_->cell()[k])).state == cell_state::ready ? 1U : 0U;
    return n;
}

std::vector<u32> queue::epochs(cell_state s) const {
    std::vector<u32> out;
    for (u32 k = 0; k < b_->capacity; ++k)
        if (const cell_word w = cell_word::of(load(b_->cell()[k])); w.state == s) out.push_back(w.epoch);
    return out;
}

void repair(queue_block& b, u32 dead) {
    at(step::repair_begun);
    const queue_body<cpu_side> q(b.parts(), 0);
    for (u32 k = 0; k < b.capacity; ++k) q.settle_marked(k);
    q.settle_done();
    for (u32 k = 0; k < b.capacity; ++k) q.repair_cell(k, dead);
    shm::ring(b.bell);
    at(step::repair_done);
}

}  // namespace carousel::ipc
