#include "ipc/semaphore.hpp"

#include "ipc/step.hpp"

namespace carousel::ipc {
namespace {

void go_on(word& at_place, const line_word& w) {
    (void)cas(at_place, w.pack(), line_word{w.count + 1, 0, line_state::empty}.pack());
}

}  // namespace

// Lock-free: who fails has been overtaken by another who has joined, or moves a hint that was behind.
std::optional<u64> semaphore::join() {
    u64 ticket = load(b_->tail);
    for (u32 look = 0; look < 4 * b_->line; ++look) {
        const line_word here = line_word::of(load(place(ticket))), mine = lap_of(ticket);
        const int round = round_of(here.count, mine.count);
        if (round < 0) return std::nullopt;  // somebody of the lap before stands there: the line is full
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

void semaphore::leave(u64 ticket) {
    go_on(place(ticket), {lap_of(ticket).count, epoch_, line_state::waiting});
    at(step::line_left);
    shm::ring(b_->bell);
}

u32 semaphore::waiting_before(u64 ticket) {
    u64 first = load(b_->head);
    while (first < ticket && round_of(line_word::of(load(place(first))).count, lap_of(first).count) > 0) {
        hint(b_->head, first, first + 1);
        ++first;
    }
    u32 waiting = 0;
    for (u64 t = first; t < ticket; ++t) {
        if (round_of(line_word::of(load(place(t))).count, lap_of(t).count) <= 0) ++waiting;
        at(step::turn_looked);
    }
    return waiting;
}

// A free permit, if there are more free ones than `waiting`.
std::optional<u32> semaphore::free_beyond(u32 waiting) const {
    std::optional<u32> found;
    u32 free = 0;
    for (u32 k = 0; k < b_->permits && free <= waiting; ++k) {
        const bool is_free = permit_word::of(load(b_->permit()[k])).state == permit_state::free;
        at(step::turn_looked);
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
    for (u32 look = 0; look <= b_->permits; ++look) {
#ifndef CAROUSEL_BUG_COUNTS_LATE
        const u32 before = waiting_before(ticket);
        const std::optional<u32> k = free_beyond(before);
#else
        // Seeded bug: the permits are looked at first, so one that somebody has taken and left the line with
        // counts twice.
        const u32 free = free_permits();
        at(step::turn_known);
        const u32 before = waiting_before(ticket);
        const std::optional<u32> k = before < free ? free_beyond(0) : std::nullopt;
#endif
        if (!k) return std::nullopt;
        const permit_word seen = permit_word::of(load(b_->permit()[*k]));
        at(step::turn_known);
        const u64 held = permit_word{seen.count, epoch_, permit_state::held}.pack();
#ifndef CAROUSEL_BUG_TAKES_UNCHECKED
        if (seen.state != permit_state::free || !cas(b_->permit()[*k], seen.pack(), held)) continue;
#else
        b_->permit()[*k].store(held);  // seeded bug: whoever took it meanwhile has it, too
#endif
        at(step::permit_taken);
        return permit{*k, seen.count};
    }
    return std::nullopt;
}

std::optional<permit> semaphore::acquire(u64 timeout_ns) {
    const u64 deadline = deadline_after(timeout_ns);
    std::optional<u64> ticket;
    for (;;) {
        const u32 seen = shm::ticket(b_->bell);  // before the look: a ring behind it ends the sleep
        if (!ticket) ticket = join();
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

void mend(semaphore_block& b, u32 dead) {
    at(step::mend_begun);
    for (u32 k = 0; k < b.permits; ++k) {
        const permit_word w = permit_word::of(load(b.permit()[k]));
        if (w.state != permit_state::held || w.epoch != dead) continue;
#ifndef CAROUSEL_BUG_KEEPS_PERMITS
        (void)cas(b.permit()[k], w.pack(), permit_word{w.count + 1, 0, permit_state::free}.pack());
#endif
        at(step::mended_word);
    }
    for (u32 k = 0; k < b.line; ++k) {
        const line_word w = line_word::of(load(b.place()[k]));
        if (w.state != line_state::waiting || w.epoch != dead) continue;
#ifndef CAROUSEL_BUG_KEEPS_TICKETS
        go_on(b.place()[k], w);
#endif
        at(step::mended_word);
    }
    shm::ring(b.bell);
    at(step::mend_done);
}

}  // namespace carousel::ipc
