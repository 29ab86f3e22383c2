#include "ipc/work_queue.hpp"

#include <cstring>

#include "ipc/step.hpp"
#include "ipc/wait_check.hpp"

namespace carousel::ipc {
namespace {

template <class Attempt>
auto wait_for(work_queue_block& b, u64 timeout_ns, Attempt attempt) {
    const u64 deadline = deadline_after(timeout_ns);
    for (;;) {
        const u32 seen = shm::ticket(b.bell);  // The ticket is read before the attempt: if the doorbell rings
                                               // after that, the sleep ends.
        if (auto got = attempt()) return got;
        if (!sleep_until(b.bell, seen, deadline))
            return this_thread_wait_check().ended ? decltype(attempt())() : attempt();
    }
}

}  // namespace

std::optional<task_name> work_queue::try_submit(const void* task) {
    const task_body<cpu_side> w = body();
    task_name n;
    if (!w.fill(n)) return std::nullopt;
    std::memcpy(w.task(n.place), task, b_->task_bytes);
    at(step::task_written);
    if (!w.submit(n)) return std::nullopt;
    shm::ring(b_->bell);
    return n;
}

std::optional<task_name> work_queue::submit(const void* task, u64 timeout_ns) {
    return wait_for(*b_, timeout_ns, [&] { return try_submit(task); });
}

std::optional<claimed_task> work_queue::try_claim(void* task) {
    const task_body<cpu_side> w = body();
    claimed_task t;
    if (!w.claim(t)) return std::nullopt;
    std::memcpy(task, w.task(t.name.place), b_->task_bytes);
    return t;
}

std::optional<claimed_task> work_queue::claim(void* task, u64 timeout_ns) {
    return wait_for(*b_, timeout_ns, [&] { return try_claim(task); });
}

bool work_queue::commit(const claimed_task& t) {
    if (!body().commit(t)) return false;
    shm::ring(b_->bell);
    return true;
}

bool work_queue::fail(const claimed_task& t) {
    if (!body().fail(t)) return false;
    shm::ring(b_->bell);
    return true;
}

std::optional<claimed_task> work_queue::take_dead_letter(void* task) {
    const task_body<cpu_side> w = body();
    claimed_task t;
    if (!w.read_dead_letter(t)) return std::nullopt;
    std::memcpy(task, w.task(t.name.place), b_->task_bytes);
    at(step::dead_letter_read);
    w.remove_dead_letter(t);
    shm::ring(b_->bell);
    return t;
}

task_fate work_queue::fate(const task_name& t) const {
    const task_word w = task_word::of(load(b_->place()[t.place % b_->capacity]));
    if (w.generation != t.generation || w.state == task_state::free) return task_fate::over;
    if (w.state == task_state::claimed) return task_fate::claimed;
    return w.state == task_state::dead_letter || w.state == task_state::reading ? task_fate::dead_letter
                                                                                : task_fate::waiting;
}

u32 work_queue::count(task_state s) const {
    u32 n = 0;
    for (u32 k = 0; k < b_->capacity; ++k) n += task_word::of(load(b_->place()[k])).state == s ? 1U : 0U;
    return n;
}

std::vector<u32> work_queue::claimers() const {
    std::vector<u32> out;
    for (u32 k = 0; k < b_->capacity; ++k)
        if (const task_word w = task_word::of(load(b_->place()[k])); w.state == task_state::claimed)
            out.push_back(w.epoch);
    return out;
}

void repair(work_queue_block& b, u32 dead) {
    at(step::repair_begun);
    const task_body<cpu_side> w(b.parts(), 0);
    for (u32 k = 0; k < b.capacity; ++k) w.repair_place(k, dead);
    shm::ring(b.bell);
    at(step::repair_done);
}

}  // namespace carousel::ipc
