#include "ipc/semaphore.hpp"

#include "core/clock.hpp"
#include "ipc/step.hpp"

namespace carousel::ipc {
namespace {

void advance(word& at_place, const line_word& w) {
    (void)cas(at_place, w.pack(), line_word{w.count + 1, 0, line_state::empty}.pack());
}

/// The content of the hint `late`: the first waiter, and the time since which it has left a free permit
/// unused. 0: there is no such waiter.
struct late_mark {
    static constexpr u64 ticket_mask = (u64{1} << 28) - 1, clock_mask = (u64{1} << 36) - 1;
    [[nodiscard]] static u64 pack(u64 ticket, u64 ms) {
        return ((ticket + 1) & ticket_mask) << 36U | (ms & clock_mask);
    }
    [[nodiscard]] static bool names(u64 mark, u64 ticket) {
        return mark != 0 && mark >> 36U == ((ticket + 1) & ticket_mask);
    }
    [[nodiscard]] static u64 age_ms(u64 mark, u64 ms) { return (ms - mark) & clock_mask; }
};

}  // namespace

// Lock-free: a CAS fails only if another client has joined the line or has moved the hint.
std::optional<u64> semaphore::join() {
    u64 ticket = load(b_->tail);
    for (u32 attempt = 0; attempt < 4 * b_->line; ++attempt) {
        const line_word here = line_word::of(load(place(ticket))), mine = lap_of(ticket);
        const int round = round_of(here.count, mine.count);
        if (round < 0) return std::nullopt;  // full: the place still has a waiter of the previous lap
        if (round == 0 && here.state == line_state::empty) {
            const line_word waits{mine.count, epoch_, line_state::waiting};
            if (!cas(place(ticket), here.pack(), waits.pack())) continue;
            hint(b_->tail, ticket, ticket + 1);
            at(step::line_joined);
            return ticket;
        }
        hint(b_->tail, ticket, ticket + 1);
        const u64 tail = load(b_->tail);
        ticket = tail > ticket ? tail : ticket + 1;
    }
    return std::nullopt;
}

bool semaphore::in_line(u64 ticket) const {
    return line_word::of(load(place(ticket))) == line_word{lap_of(ticket).count, epoch_, line_state::waiting};
}

void semaphore::leave(u64 ticket) {
    advance(place(ticket), {lap_of(ticket).count, epoch_, line_state::waiting});
    at(step::line_left);
    shm::ring(b_->bell);
}

semaphore::in_front semaphore::before(u64 ticket) {
    u64 first = load(b_->head);
    while (first < ticket && round_of(line_word::of(load(place(first))).count, lap_of(first).count) > 0) {
        hint(b_->head, first, first + 1);
        ++first;
    }
    in_front all;
    for (u64 t = first; t < ticket; ++t) {
        if (round_of(line_word::of(load(place(t))).count, lap_of(t).count) <= 0 && all.waiting++ == 0)
            all.first = t;
        at(step::turn_checked);
    }
    return all;
}

// Returns one of the free permits if more than `waiting` permits are free.
std::optional<u32> semaphore::free_beyond(u32 waiting) const {
    std::optional<u32> found;
    u32 free = 0;
    for (u32 k = 0; k < b_->permits && free <= waiting; ++k) {
        const bool is_free = permit_word::of(load(b_->permit()[k])).state == permit_state::free;
        at(step::turn_checked);
        if (!is_free) continue;
        ++free;
        found = k;
    }
#ifndef CAROUSEL_BUG_OVERTAKES
    if (free <= waiting) return std::nullopt;
#endif
    return found;
}

std::optional<permit> semaphore::take(u64 ticket) {
    for (u32 attempt = 0; attempt <= b_->permits; ++attempt) {
#ifndef CAROUSEL_BUG_COUNTS_LATE
        const in_front others = before(ticket);
        const std::optional<u32> k = free_beyond(others.waiting);
#else
        // Seeded bug: the permits are counted before the waiters. If a waiter takes a permit and leaves the
        // line in between, that permit is counted as free, and its waiter is not counted.
        const u32 free = free_permits();
        at(step::turn_known);
        const in_front others = before(ticket);
        const std::optional<u32> k = others.waiting < free ? free_beyond(0) : std::nullopt;
#endif
        if (!k) {
            pass_by_late(others);
            return std::nullopt;
        }
        const permit_word seen = permit_word::of(load(b_->permit()[*k]));
        at(step::turn_known);
        const u64 held = permit_word{seen.count, epoch_, permit_state::held}.pack();
#ifndef CAROUSEL_BUG_TAKES_UNCHECKED
        if (seen.state != permit_state::free || !cas(b_->permit()[*k], seen.pack(), held)) continue;
#else
        b_->permit()[*k].store(held);  // seeded bug: if another client has taken the permit in the meantime,
                                       // both clients have it
#endif
        at(step::permit_taken);
        return permit{*k, seen.count};
    }
    return std::nullopt;
}

// The first waiter may take a free permit at once. If it does not take the permit within line_patience_ns, it
// is stopped, dead or starved; then it is passed over, and the next waiter becomes the first.
void semaphore::pass_by_late(const in_front& others) {
    if (others.waiting == 0) return;
    const u64 now_ms = clock_ns() / ns_per_ms, mark = load(b_->late);
    const bool named = late_mark::names(mark, others.first);
    if (free_permits() == 0) {  // no permit is free, so the first waiter is not late
        if (named) hint(b_->late, mark, 0);
        return;
    }
    if (!named) {
        hint(b_->late, mark, late_mark::pack(others.first, now_ms));
        return;
    }
    if (late_mark::age_ms(mark, now_ms) < line_patience_ns / ns_per_ms) return;
    word& late = place(others.first);
    const line_word w = line_word::of(load(late));
    if (w.state != line_state::waiting || w.count != lap_of(others.first).count) return;
    advance(late, w);
    at(step::line_passed);
    shm::ring(b_->bell);
}

std::optional<permit> semaphore::acquire(u64 timeout_ns) {
    const u64 deadline = deadline_after(timeout_ns);
    std::optional<u64> ticket;
    for (;;) {
        const u32 seen = shm::ticket(b_->bell);  // the ticket is read before the attempt: if the doorbell
                                                 // rings after that, the sleep ends
        if (ticket && !in_line(*ticket)) ticket.reset();  // it was passed over
        if (!ticket) ticket = join();
        if (!ticket) pass_by_late(before(load(b_->tail)));  // the line is full, possibly with late waiters
        if (ticket) {
            if (const std::optional<permit> got = take(*ticket)) {
                leave(*ticket);
                return got;
            }
        }
        if (!sleep_until(b_->bell, seen, deadline)) break;
    }
    if (ticket) leave(*ticket);
    return std::nullopt;
}

bool semaphore::release(const permit& p) {
    const permit_word mine{p.generation, epoch_, permit_state::held};
    const permit_word free{p.generation + 1, 0, permit_state::free};
    if (p.index >= b_->permits || !cas(b_->permit()[p.index], mine.pack(), free.pack())) return false;
    at(step::permit_released);
    shm::ring(b_->bell);
    return true;
}

std::vector<u32> semaphore::holders() const {
    std::vector<u32> out;
    for (u32 k = 0; k < b_->permits; ++k)
        if (const permit_word w = permit_word::of(load(b_->permit()[k])); w.state == permit_state::held)
            out.push_back(w.epoch);
    return out;
}

u32 semaphore::free_permits() const { return b_->permits - static_cast<u32>(holders().size()); }

u32 semaphore::waiting() const {
    u32 n = 0;
    for (u32 k = 0; k < b_->line; ++k)
        n += line_word::of(load(b_->place()[k])).state == line_state::waiting ? 1U : 0U;
    return n;
}

void repair(semaphore_block& b, u32 dead) {
    at(step::repair_begun);
    for (u32 k = 0; k < b.permits; ++k) {
        const permit_word w = permit_word::of(load(b.permit()[k]));
        if (w.state != permit_state::held || w.epoch != dead) continue;
#ifndef CAROUSEL_BUG_KEEPS_PERMITS
        (void)cas(b.permit()[k], w.pack(), permit_word{w.count + 1, 0, permit_state::free}.pack());
#endif
        at(step::word_repaired);
    }
    for (u32 k = 0; k < b.line; ++k) {
        const line_word w = line_word::of(load(b.place()[k]));
        if (w.state != line_state::waiting || w.epoch != dead) continue;
#ifndef CAROUSEL_BUG_KEEPS_TICKETS
        advance(b.place()[k], w);
#endif
        at(step::word_repaired);
    }
    shm::ring(b.bell);
    at(step::repair_done);
}

}  // namespace carousel::ipc
