#include "ipc/work_queue.hpp"

#include <cstring>

#include "ipc/step.hpp"

namespace carousel::ipc {
namespace {

task_word freed(const task_word& w) { return {w.generation + 1, 0, 0, task_state::free}; }

// What becomes of a claim that came to nothing.
task_word failed(const task_word& w, u32 max_attempts) {
#ifndef CAROUSEL_BUG_FORGETS_ATTEMPTS
    const u32 attempts = w.attempts + 1;
#else
    const u32 attempts = w.attempts;
#endif
    return {w.generation, attempts, 0, attempts >= max_attempts ? task_state::letter : task_state::waiting};
}

template <class Look>
auto wait_for(work_queue_block& b, u64 timeout_ns, Look look) {
    const u64 deadline = deadline_after(timeout_ns);
    for (;;) {
        const u32 seen = shm::ticket(b.bell);  // before the look: a ring behind it ends the sleep
        if (auto got = look()) return got;
        if (!sleep_until(b.bell, seen, deadline)) return look();
    }
}

}  // namespace

bool work_queue::change(u32 place, const task_word& from, const task_word& to) {
    return cas(b_->place()[place], from.pack(), to.pack());
}

std::optional<task_word> work_queue::take(task_state from, task_state to, word& hint_at, u32& place) {
    const u64 first = load(hint_at);
    for (u32 look = 0; look < b_->capacity; ++look) {
        place = static_cast<u32>((first + look) % b_->capacity);
        const task_word here = task_word::of(load(b_->place()[place]));
        if (here.state != from) continue;
        const task_word mine{here.generation, here.attempts, epoch_, to};
#ifndef CAROUSEL_BUG_CLAIMS_UNCHECKED
        if (!change(place, here, mine)) continue;
#else
        at(step::turn_known);
        b_->place()[place].store(mine.pack());  // seeded bug: two may have it
#endif
        hint(hint_at, first, first + look + 1);
        return mine;
    }
    return std::nullopt;
}

std::optional<task_name> work_queue::try_submit(const void* task) {
    u32 place = 0;
    const auto mine = take(task_state::free, task_state::filling, b_->next_free, place);
    if (!mine) return std::nullopt;
    at(step::task_filling);
    std::memcpy(b_->task(place), task, b_->task_bytes);
    at(step::task_written);
    if (!change(place, *mine, {mine->generation, 0, 0, task_state::waiting})) return std::nullopt;
    at(step::task_submitted);
    shm::ring(b_->bell);
    return task_name{place, mine->generation};
}

std::optional<task_name> work_queue::submit(const void* task, u64 timeout_ns) {
    return wait_for(*b_, timeout_ns, [&] { return try_submit(task); });
}

std::optional<claimed_task> work_queue::try_claim(void* task) {
    u32 place = 0;
    const auto mine = take(task_state::waiting, task_state::claimed, b_->next_waiting, place);
    if (!mine) return std::nullopt;
    at(step::task_claimed);
    std::memcpy(task, b_->task(place), b_->task_bytes);
    return claimed_task{{place, mine->generation}, mine->attempts};
}

std::optional<claimed_task> work_queue::claim(void* task, u64 timeout_ns) {
    return wait_for(*b_, timeout_ns, [&] { return try_claim(task); });
}

bool work_queue::commit(const claimed_task& t) {
    const task_word mine{t.name.generation, t.attempts, epoch_, task_state::claimed};
    if (t.name.place >= b_->capacity || !change(t.name.place, mine, freed(mine))) return false;
    at(step::task_committed);
    shm::ring(b_->bell);
    return true;
}

bool work_queue::fail(const claimed_task& t) {
    const task_word mine{t.name.generation, t.attempts, epoch_, task_state::claimed};
    if (t.name.place >= b_->capacity || !change(t.name.place, mine, failed(mine, b_->max_attempts)))
        return false;
    at(step::task_failed);
    shm::ring(b_->bell);
    return true;
}

std::optional<claimed_task> work_queue::take_letter(void* task) {
    for (u32 place = 0; place < b_->capacity; ++place) {
        const task_word here = task_word::of(load(b_->place()[place]));
        const task_word mine{here.generation, here.attempts, epoch_, task_state::reading};
        if (here.state != task_state::letter || !change(place, here, mine)) continue;
        std::memcpy(task, b_->task(place), b_->task_bytes);
        at(step::task_letter_read);
        (void)change(place, mine, freed(mine));
        at(step::task_committed);
        shm::ring(b_->bell);
        return claimed_task{{place, here.generation}, here.attempts};
    }
    return std::nullopt;
}

task_fate work_queue::fate(const task_name& t) const {
    const task_word w = task_word::of(load(b_->place()[t.place % b_->capacity]));
    if (w.generation != t.generation || w.state == task_state::free) return task_fate::over;
    if (w.state == task_state::claimed) return task_fate::claimed;
    return w.state == task_state::letter || w.state == task_state::reading ? task_fate::letter
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

void mend(work_queue_block& b, u32 dead) {
    at(step::mend_begun);
    for (u32 k = 0; k < b.capacity; ++k) {
        const task_word w = task_word::of(load(b.place()[k]));
        if (w.epoch != dead || w.state == task_state::free) continue;
        task_word next = freed(w);  // FILLING: nobody has seen it
#ifdef CAROUSEL_BUG_KEEPS_FILLING
        if (w.state == task_state::filling) next = w;
#endif
#ifndef CAROUSEL_BUG_DROPS_CLAIMED
        if (w.state == task_state::claimed) next = failed(w, b.max_attempts);
#endif
        if (w.state == task_state::reading) next = {w.generation, w.attempts, 0, task_state::letter};
        (void)cas(b.place()[k], w.pack(), next.pack());
        at(step::mended_word);
    }
    shm::ring(b.bell);
    at(step::mend_done);
}

}  // namespace carousel::ipc
