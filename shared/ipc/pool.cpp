#include "ipc/pool.hpp"

#include <algorithm>

#include "ipc/step.hpp"

namespace carousel::ipc {
namespace {

constexpr u64 body_of(u32 first) { return unit_word{first, 0, unit_state::body}.pack(); }

u32 length_at(pool_block& b, u32 first) {
    u32 n = 1;
    while (first + n < b.units && load(b.unit()[first + n]) == body_of(first)) ++n;
    return n;
}

// Frees the units in descending order, the first unit last. So as long as a unit of the block is left, the
// first unit names the owner. Called by the owner, or by the holder after the fence.
void free_run(pool_block& b, u32 first, const unit_word& leaving) {
#ifdef CAROUSEL_BUG_FREES_FIRST_FIRST
    const u32 whole = length_at(b, first);  // seeded bug
    (void)cas(b.unit()[first], leaving.pack(), 0);
    at(step::block_freed);
    for (u32 n = whole; n-- > 1;) {
        (void)cas(b.unit()[first + n], body_of(first), 0);
        at(step::body_freed);
    }
#else
    for (u32 n = length_at(b, first); n-- > 1;) {
        (void)cas(b.unit()[first + n], body_of(first), 0);
        at(step::body_freed);
    }
    (void)cas(b.unit()[first], leaving.pack(), 0);
    at(step::block_freed);
#endif
}

}  // namespace

u64 pool::draw() {
    for (;;) {  // lock-free: if the CAS fails, another process has drawn a number
        const u64 last = load(b_->serial), next = (last + 1) & count_mask;
        if (cas(b_->serial, last, next)) {
            at(step::serial_drawn);
            return next;
        }
    }
}

// If the claim fails, sets `reached` to the unit that was not free; the search continues with the next unit.
std::optional<block> pool::claim(u32 first, u32 units, u64 serial, u32& reached) {
    reached = first;
    const unit_word claiming{serial, epoch_, unit_state::claiming};
    if (!cas(b_->unit()[first], 0, claiming.pack())) return std::nullopt;
    at(step::head_claimed);
    for (u32 n = 1; n < units; ++n) {
#ifndef CAROUSEL_BUG_BODY_UNCHECKED
        if (!cas(b_->unit()[first + n], 0, body_of(first))) {
            reached = first + n;
            free_run(*b_, first, claiming);
            shm::ring(b_->bell);
            return std::nullopt;
        }
#else
        b_->unit()[first + n].store(body_of(first));  // seeded bug: the unit may belong to another client
#endif
        at(step::body_claimed);
    }
    const unit_word owned{serial, epoch_, unit_state::owned};
    (void)cas(b_->unit()[first], claiming.pack(), owned.pack());
    at(step::block_owned);
    return block{first, units, serial};
}

std::optional<block> pool::try_acquire(u32 units) {
    u64 serial = 0;
    for (u32 first = 0; units > 0 && units <= b_->units && first <= b_->units - units;) {
        u32 n = 0;
        while (n < units && load(b_->unit()[first + n]) == 0) ++n;
        if (n < units) {
            first += n + 1;
            continue;
        }
        if (serial == 0) serial = draw();
        u32 reached = first;
        if (const auto got = claim(first, units, serial, reached)) return got;
        first = reached + 1;
    }
    return std::nullopt;
}

std::optional<block> pool::acquire(u32 units, u64 timeout_ns) {
    const u64 deadline = deadline_after(timeout_ns);
    for (;;) {
        const u32 seen = shm::ticket(b_->bell);  // The ticket is read before the attempt: if the doorbell
                                                 // rings after that, the sleep ends.
        if (auto got = try_acquire(units)) return got;
        if (!sleep_until(b_->bell, seen, deadline)) return std::nullopt;
    }
}

bool pool::release(const block& k) {
    const unit_word mine{k.serial, epoch_, unit_state::owned}, leaving{k.serial, epoch_, unit_state::leaving};
    if (k.unit >= b_->units || !cas(b_->unit()[k.unit], mine.pack(), leaving.pack())) return false;
    at(step::block_leaving);
    free_run(*b_, k.unit, leaving);
    shm::ring(b_->bell);
    return true;
}

block_ref pool::name(const block& k) { return {k.unit, k.serial, draw()}; }

bool pool::transfer(const block_ref& r) {
    at(step::block_named);
    const unit_word mine{r.before, epoch_, unit_state::owned}, in_queue{r.after, 0, unit_state::in_queue};
    if (!cas(b_->unit()[r.unit], mine.pack(), in_queue.pack())) return false;
    at(step::block_sent);
    return true;
}

// The client that has leased the cell has the right to take the block. The block's word may still name the
// sender, or an earlier receiver that died before it committed its lease; neither of them uses the block any
// more.
std::optional<block> pool::take(const block_ref& r) {
    if (r.unit >= b_->units) return std::nullopt;
    const u32 first = static_cast<u32>(r.unit);
    for (u32 attempt = 0; attempt < 4;
         ++attempt) {  // the sender and a repair may each change the word once meanwhile
        const unit_word here = unit_word::of(load(b_->unit()[first]));
        const bool giver = here.state == unit_state::owned && here.count == r.before;
        const bool cells =
            (here.state == unit_state::in_queue || here.state == unit_state::owned) && here.count == r.after;
        if (!giver && !cells) return std::nullopt;
        const unit_word mine{r.after, epoch_, unit_state::owned};
        if (!cas(b_->unit()[first], here.pack(), mine.pack())) continue;
        at(step::block_received);
        return block{first, length_at(*b_, first), r.after};
    }
    return std::nullopt;
}

pool_use pool::use() const {
    pool_use u;
    u.units = b_->units;
    u32 run = 0;
    for (u32 k = 0; k < b_->units; ++k) {
        const unit_word w = unit_word::of(load(b_->unit()[k]));
        run = w.state == unit_state::free ? run + 1 : 0;
        u.free += w.state == unit_state::free ? 1U : 0U;
        u.largest_free = std::max(u.largest_free, run);
        u.blocks += w.state == unit_state::owned ? 1U : 0U;
        u.in_queue += w.state == unit_state::in_queue ? 1U : 0U;
    }
    return u;
}

std::vector<u32> pool::owners() const {
    std::vector<u32> out;
    for (u32 k = 0; k < b_->units; ++k)
        if (const unit_word w = unit_word::of(load(b_->unit()[k]));
            w.state == unit_state::owned || w.state == unit_state::leaving || w.state == unit_state::claiming)
            out.push_back(w.epoch);
    return out;
}

bool is_owned(pool_block& b, const block& k, u32 by) {
    std::atomic_thread_fence(std::memory_order_acquire);  // the reads before this call come first
    if (k.unit >= b.units) return false;
    return load(b.unit()[k.unit]) == unit_word{k.serial, by, unit_state::owned}.pack();
}

void repair(pool_block& b, u32 dead, const std::vector<block_ref>& named) {
    at(step::repair_begun);
    for (u32 k = 0; k < b.units; ++k) {
        unit_word w = unit_word::of(load(b.unit()[k]));
        if (w.epoch != dead || w.state == unit_state::body || w.state == unit_state::free) continue;
        if (w.state == unit_state::owned) {
#ifdef CAROUSEL_BUG_KEEPS_BLOCKS
            continue;
#endif
            unit_word next{w.count, dead, unit_state::leaving};
#ifndef CAROUSEL_BUG_FREES_NAMED
            for (const block_ref& r : named)
                if (r.unit == k && (r.before == w.count || r.after == w.count))
                    next = {r.after, 0, unit_state::in_queue};
#endif
            if (!cas(b.unit()[k], w.pack(), next.pack()))
                continue;  // a receiver has taken the block in the
                           // meantime
            at(step::word_repaired);
            w = next;
        }
        if (w.state != unit_state::in_queue) free_run(b, k, w);
    }
    shm::ring(b.bell);
    at(step::repair_done);
}

bool try_send(pool& from, const block& k, queue& to, void* element) {
    const block_ref r = from.name(k);
    std::memcpy(element, &r, sizeof r);
#ifdef CAROUSEL_BUG_TRANSFERS_FIRST
    (void)from.transfer(r);  // seeded bug: for a moment no word or cell names the block
#endif
    if (!to.try_push(element)) return false;
    (void)from.transfer(r);  // returns false if the block has already been received
    return true;
}

std::optional<block> try_receive(queue& from, pool& to, void* element, bool* damaged) {
    if (damaged != nullptr) *damaged = false;
    const std::optional<lease> l = from.try_lease(element);
    if (!l) return std::nullopt;
    block_ref r;
    std::memcpy(&r, element, sizeof r);
#ifdef CAROUSEL_BUG_COMMITS_FIRST
    (void)from.commit(*l);  // seeded bug: for a moment no word or cell names the block
#endif
    const std::optional<block> got = to.take(r);
    if (damaged != nullptr) *damaged = !got;
    (void)from.commit(*l);
    return got;
}

void gather_named(queue_block& b, std::vector<block_ref>& named) {
    for (u32 k = 0; k < b.capacity; ++k) {
        const cell_state s = cell_word::of(load(b.cell()[k])).state;
        if (s != cell_state::ready && s != cell_state::leased) continue;
        // While the element is read, a consumer may free the cell, and a producer may write it again. In this
        // case the block has a live owner, so the CAS of the repair fails, even if the value that is read
        // here is wrong.
        block_ref r;
        std::memcpy(&r, b.element(k), sizeof r);
        named.push_back(r);
    }
}

}  // namespace carousel::ipc
