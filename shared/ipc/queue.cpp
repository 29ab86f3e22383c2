#include "ipc/queue.hpp"

#include <cstring>

#include "ipc/step.hpp"

namespace carousel::ipc {

// Lock-free: who fails has been overtaken by a claim of another, or moves a hint that was behind.
std::optional<u64> queue::claim() {
    u64 ticket = load(b_->tail);
    for (u64 look = 0; look < 4 * u64{b_->capacity}; ++look) {
        const cell_word here = cell_word::of(load(cell(ticket)));
        const int round = round_of(here.count, lap(ticket));
        if (round < 0) return std::nullopt;  // what was pushed a lap ago is still there: full
        if (round == 0 && here.state == cell_state::free) {
            const cell_word mine{here.count, epoch_, cell_state::claimed};
            if (!cas(cell(ticket), here.pack(), mine.pack())) continue;
            hint(b_->tail, ticket, ticket + 1);
            at(step::cell_claimed);
            return ticket;
        }
        hint(b_->tail, ticket, ticket + 1);
        const u64 tail = load(b_->tail);
        ticket = tail > ticket ? tail : ticket + 1;
    }
    return std::nullopt;
}

bool queue::try_push(const void* from) {
    const std::optional<u64> ticket = claim();
    if (!ticket) return false;
    const cell_word mine{lap(*ticket), epoch_, cell_state::claimed};
    const u64 ready = cell_word{mine.count, 0, cell_state::ready}.pack();
#ifdef CAROUSEL_BUG_PUBLISHES_FIRST
    (void)cas(cell(*ticket), mine.pack(), ready);  // seeded bug
    at(step::cell_published);
#endif
    std::memcpy(element(*ticket), from, b_->element_bytes);
    at(step::cell_written);
    (void)cas(cell(*ticket), mine.pack(), ready);
#ifndef CAROUSEL_BUG_PUBLISHES_FIRST
    at(step::cell_published);
#endif
    shm::ring(b_->bell);
    return true;
}

std::optional<u64> queue::take(cell_state as) {
    u64 ticket = load(b_->head), first = ticket;  // all before `first` have been passed by
    // Lock-free: it ends at the line's end, and who fails has been overtaken. The hint may be laps behind:
    // the cells of dead producers are freed without a consumer.
    while (ticket < first + b_->capacity) {
        const cell_word here = cell_word::of(load(cell(ticket)));
        const int round = round_of(here.count, lap(ticket));
        if (round < 0) return std::nullopt;
        if (round == 0) {
            if (here.state == cell_state::free) return std::nullopt;
#ifndef CAROUSEL_BUG_PASSES_CLAIMED
            if (here.state == cell_state::claimed) return std::nullopt;
#endif
            if (here.state == cell_state::ready) {
                const cell_word mine{here.count, epoch_, as};
                if (!cas(cell(ticket), here.pack(), mine.pack()))
                    continue;  // somebody was faster: look again
                at(as == cell_state::leased ? step::cell_leased : step::cell_popping);
                return ticket;
            }
        } else if (ticket == first) {
            hint(b_->head, ticket, ticket + 1);
            ++first;
        }
        at(step::cell_passed);
        ++ticket;
    }
    return std::nullopt;
}

bool queue::consume(u64 ticket, cell_state from) {
    const cell_word mine{lap(ticket), epoch_, from};
    const cell_word next{mine.count + 1, 0, cell_state::free};
    if (!cas(cell(ticket), mine.pack(), next.pack())) return false;
    at(step::cell_consumed);
    shm::ring(b_->bell);
    return true;
}

bool queue::try_pop(void* to) {
    const std::optional<u64> ticket = take(cell_state::popping);
    if (!ticket) return false;
    std::memcpy(to, element(*ticket), b_->element_bytes);
    return consume(*ticket, cell_state::popping);
}

std::optional<lease> queue::try_lease(void* to) {
    const std::optional<u64> ticket = take(cell_state::leased);
    if (!ticket) return std::nullopt;
    std::memcpy(to, element(*ticket), b_->element_bytes);
    return lease{*ticket};
}

bool queue::commit(const lease& l) { return consume(l.ticket, cell_state::leased); }

bool queue::give_back(const lease& l) {
    const cell_word mine{lap(l.ticket), epoch_, cell_state::leased};
    const cell_word ready{mine.count, 0, cell_state::ready};
    if (!cas(cell(l.ticket), mine.pack(), ready.pack())) return false;
    at(step::cell_returned);
    shm::ring(b_->bell);
    return true;
}

namespace {

// `look` until it succeeds or the time is over. The bell's ticket is read before the look, so a change behind
// it ends the sleep.
template <class Look>
auto wait_for(queue_block& b, u64 timeout_ns, Look look) {
    const u64 deadline = deadline_after(timeout_ns);
    for (;;) {
        const u32 seen = shm::ticket(b.bell);
        if (auto got = look()) return got;
        if (!sleep_until(b.bell, seen, deadline)) return look();
    }
}

// From a state in which a dead one has left the cell to the next lap, counted once.
void bury(queue_block& b, u32 k, cell_word w, cell_state grave, word& tally) {
    if (w.state != grave) {
        const cell_word marked{w.count, 0, grave};
        if (!cas(b.cell()[k], w.pack(), marked.pack())) return;
        w = marked;
        at(step::loss_marked);
    }
#ifndef CAROUSEL_BUG_COUNTS_TWICE
    count_once(tally, k, w.count);
#else
    (void)cas(tally, load(tally), load(tally) + (u64{1} << 40U));  // seeded bug
#endif
    at(step::loss_counted);
    (void)cas(b.cell()[k], w.pack(), cell_word{w.count + 1, 0, cell_state::free}.pack());
    at(step::mended_word);
    count_done(tally);
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

void mend(queue_block& b, u32 dead) {
    at(step::mend_begun);
    // What another mend has marked is this one's, whoever had died, and goes before all else: a tally knows
    // the last cell alone that was counted. A mend marks one at a time, so there is one at most; behind it
    // what the tallies know is over.
    for (u32 k = 0; k < b.capacity; ++k) {
        const cell_word w = cell_word::of(load(b.cell()[k]));
        if (w.state == cell_state::tomb) bury(b, k, w, cell_state::tomb, b.tombs);
        if (w.state == cell_state::lost) bury(b, k, w, cell_state::lost, b.lost);
    }
    count_done(b.tombs);
    count_done(b.lost);
    for (u32 k = 0; k < b.capacity; ++k) {
        const cell_word w = cell_word::of(load(b.cell()[k]));
        if (w.epoch != dead) continue;
#ifndef CAROUSEL_BUG_KEEPS_CLAIMED
        if (w.state == cell_state::claimed) bury(b, k, w, cell_state::tomb, b.tombs);
#endif
#ifndef CAROUSEL_BUG_REDELIVERS_POPPED
        if (w.state == cell_state::popping) bury(b, k, w, cell_state::lost, b.lost);
#else
        if (w.state == cell_state::popping)
            (void)cas(b.cell()[k], w.pack(), cell_word{w.count, 0, cell_state::ready}.pack());
#endif
        if (w.state != cell_state::leased) continue;
#ifndef CAROUSEL_BUG_LOSES_LEASED
        (void)cas(b.cell()[k], w.pack(), cell_word{w.count, 0, cell_state::ready}.pack());
#else
        (void)cas(b.cell()[k], w.pack(), cell_word{w.count + 1, 0, cell_state::free}.pack());
#endif
        at(step::mended_word);
    }
    shm::ring(b.bell);
    at(step::mend_done);
}

}  // namespace carousel::ipc
