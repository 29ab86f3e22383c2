#pragma once
// The work queue's steps; the CPU and kernels use the same code. work_queue.hpp describes the words, what a
// crash leaves at each step, and the memory order, which are the same for both. Side: queue_body.hpp.

#include "ipc/owner_word.hpp"
#include "ipc/steps.hpp"

namespace carousel::ipc {

enum class task_state : u8 { free, filling, waiting, claimed, dead_letter, reading };
struct task_word {
    u32 generation = 0, attempts = 0, epoch = 0;
    task_state state = task_state::free;
    [[nodiscard]] CAROUSEL_HD static constexpr task_word of(u64 w) {
        return {static_cast<u32>(w >> 32U), static_cast<u32>(w >> 28U) & 15U,
                static_cast<u32>(w >> 4U) & epoch_mask, static_cast<task_state>(w & 15U)};
    }
    [[nodiscard]] CAROUSEL_HD constexpr u64 pack() const {
        return u64{generation} << 32U | u64{attempts & 15U} << 28U | u64{epoch & epoch_mask} << 4U |
               static_cast<u64>(state);
    }
    bool operator==(const task_word&) const = default;
};
inline constexpr u32 most_attempts = 15;

struct task_name {
    u32 place = 0, generation = 0;
    bool operator==(const task_name&) const = default;
};
struct claimed_task {
    task_name name;
    u32 attempts = 0;  ///< number of failed attempts before this one
};

/// The addresses of a work queue's parts in this process.
template <class Word>
struct task_parts {
    Word* place = nullptr;
    u8* tasks = nullptr;
    Word *next_free = nullptr, *next_waiting = nullptr;  ///< hints
    u32 capacity = 0, task_bytes = 0, max_attempts = 0;
};

template <class Side>
class task_body {
public:
    using word = typename Side::word;
    CAROUSEL_HD task_body(const task_parts<word>& p, u32 epoch) : p_(p), epoch_(epoch) {}

    /// FREE -> FILLING. Returns false if no place is free.
    [[nodiscard]] CAROUSEL_SIDE bool fill(task_name& n) const;
    /// FILLING -> WAITING. Called after the task is written.
    CAROUSEL_SIDE bool submit(const task_name& n) const;
    /// WAITING -> CLAIMED. Returns false if no task is waiting.
    [[nodiscard]] CAROUSEL_SIDE bool claim(claimed_task& t) const;
    /// CLAIMED -> FREE. Returns false if this client does not hold that claim (any more).
    CAROUSEL_SIDE bool commit(const claimed_task& t) const;
    /// CLAIMED -> WAITING or DEAD_LETTER.
    CAROUSEL_SIDE bool fail(const claimed_task& t) const;
    /// DEAD_LETTER -> READING -> FREE.
    [[nodiscard]] CAROUSEL_SIDE bool read_dead_letter(claimed_task& t) const;
    CAROUSEL_SIDE void remove_dead_letter(const claimed_task& t) const;
    [[nodiscard]] CAROUSEL_SIDE u8* task(u32 place) const {
        return p_.tasks + place * ((u64{p_.task_bytes} + 7) / 8 * 8);
    }
    /// Called after the fence of `dead`. May be repeated.
    CAROUSEL_SIDE void repair_place(u32 k, u32 dead) const;

private:
    [[nodiscard]] CAROUSEL_SIDE static task_word freed(const task_word& w) {
        return {w.generation + 1, 0, 0, task_state::free};
    }
    [[nodiscard]] CAROUSEL_SIDE task_word failed(const task_word& w) const;
    [[nodiscard]] CAROUSEL_SIDE task_word mine(const claimed_task& t, task_state s) const {
        return {t.name.generation, t.attempts, epoch_, s};
    }
    CAROUSEL_SIDE bool change(u32 place, const task_word& from, const task_word& to) const {
        return Side::cas(p_.place[place], from.pack(), to.pack());
    }
    [[nodiscard]] CAROUSEL_SIDE bool take(task_state from, task_state to, word& hint_at,
                                          claimed_task& t) const;
    task_parts<word> p_;
    u32 epoch_;
};

// Returns the new word of a task after a failed attempt.
template <class Side>
CAROUSEL_SIDE task_word task_body<Side>::failed(const task_word& w) const {
#ifndef CAROUSEL_BUG_FORGETS_ATTEMPTS
    const u32 attempts = w.attempts + 1;
#else
    const u32 attempts = w.attempts;
#endif
#ifndef CAROUSEL_BUG_RETRIES_FOREVER
    return {w.generation, attempts, 0,
            attempts >= p_.max_attempts ? task_state::dead_letter : task_state::waiting};
#else
    return {w.generation, attempts, 0, task_state::waiting};
#endif
}

template <class Side>
CAROUSEL_SIDE bool task_body<Side>::take(task_state from, task_state to, word& hint_at,
                                         claimed_task& t) const {
    const u64 first = Side::load(hint_at);
    for (u32 attempt = 0; attempt < p_.capacity; ++attempt) {
        const u32 place = static_cast<u32>((first + attempt) % p_.capacity);
        const task_word here = task_word::of(Side::load(p_.place[place]));
        if (here.state != from) continue;
        const task_word next{here.generation, here.attempts, epoch_, to};
#ifndef CAROUSEL_BUG_CLAIMS_UNCHECKED
        if (!change(place, here, next)) continue;
#else
        Side::at(step::turn_known);
        p_.place[place].store(next.pack());  // seeded bug: two clients may have the task
#endif
        (void)Side::cas(hint_at, first, first + attempt + 1);
        t = {{place, here.generation}, here.attempts};
        return true;
    }
    return false;
}

template <class Side>
CAROUSEL_SIDE bool task_body<Side>::fill(task_name& n) const {
    claimed_task t;
    if (!take(task_state::free, task_state::filling, *p_.next_free, t)) return false;
    n = t.name;
    Side::at(step::task_filling);
    return true;
}

template <class Side>
CAROUSEL_SIDE bool task_body<Side>::submit(const task_name& n) const {
    const task_word filling{n.generation, 0, epoch_, task_state::filling};
    if (!change(n.place, filling, {n.generation, 0, 0, task_state::waiting})) return false;
    Side::at(step::task_submitted);
    return true;
}

template <class Side>
CAROUSEL_SIDE bool task_body<Side>::claim(claimed_task& t) const {
    if (!take(task_state::waiting, task_state::claimed, *p_.next_waiting, t)) return false;
    Side::at(step::task_claimed);
    return true;
}

template <class Side>
CAROUSEL_SIDE bool task_body<Side>::commit(const claimed_task& t) const {
    const task_word w = mine(t, task_state::claimed);
    if (t.name.place >= p_.capacity || !change(t.name.place, w, freed(w))) return false;
    Side::at(step::task_committed);
    return true;
}

template <class Side>
CAROUSEL_SIDE bool task_body<Side>::fail(const claimed_task& t) const {
    const task_word w = mine(t, task_state::claimed);
    if (t.name.place >= p_.capacity || !change(t.name.place, w, failed(w))) return false;
    Side::at(step::task_failed);
    return true;
}

template <class Side>
CAROUSEL_SIDE bool task_body<Side>::read_dead_letter(claimed_task& t) const {
    for (u32 place = 0; place < p_.capacity; ++place) {
        const task_word here = task_word::of(Side::load(p_.place[place]));
        t = {{place, here.generation}, here.attempts};
        if (here.state == task_state::dead_letter && change(place, here, mine(t, task_state::reading)))
            return true;
    }
    return false;
}

template <class Side>
CAROUSEL_SIDE void task_body<Side>::remove_dead_letter(const claimed_task& t) const {
    const task_word w = mine(t, task_state::reading);
    (void)change(t.name.place, w, freed(w));
    Side::at(step::task_committed);
}

template <class Side>
CAROUSEL_SIDE void task_body<Side>::repair_place(u32 k, u32 dead) const {
    const task_word w = task_word::of(Side::load(p_.place[k]));
    if (w.epoch != dead || w.state == task_state::free) return;
    // also correct for a task that is FILLING, because no other client has seen it
    task_word next = freed(w);
#ifdef CAROUSEL_BUG_KEEPS_FILLING
    if (w.state == task_state::filling) next = w;
#endif
#ifndef CAROUSEL_BUG_DROPS_CLAIMED
    if (w.state == task_state::claimed) next = failed(w);
#endif
#ifndef CAROUSEL_BUG_DROPS_DEAD_LETTERS
    if (w.state == task_state::reading) next = {w.generation, w.attempts, 0, task_state::dead_letter};
#endif
    (void)change(k, w, next);
    Side::at(step::word_repaired);
}

}  // namespace carousel::ipc
