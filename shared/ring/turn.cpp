#include "ring/turn.hpp"

#include <algorithm>
#include <bit>

#include "core/errors.hpp"
#include "shm/block_guard.hpp"
#include "shm/doorbell.hpp"

namespace carousel::ring {
namespace {

constexpr u64 us(u64 ns) { return ns / 1000; }
constexpr u64 bit(u32 seat) { return u64{1} << seat; }
static_assert(shm::max_seats <= 64, "one bit per seat");

}  // namespace

turn::turn(shm::control_block& c, u32 token, u32 seat) noexcept
    : control_(&c), block_(&c.turn[std::min(token, shm::max_turns - 1)]), seat_(seat) {
    CAROUSEL_ASSERT(token < shm::max_turns && seat < shm::max_seats);
}

turn::taking turn::take(u64 now_ns, u32 limit_us) noexcept {
    const shm::block_open open;
    const u64 mine = turn_word{turn_kind::held, seat_, limit_us, us(now_ns)}.pack();
    for (;;) {
        u64 raw = block_->token.load(std::memory_order_seq_cst);
        const turn_word w = turn_word::of(raw);
        const bool own = w.seat == seat_;
        const bool late = w.kind != turn_kind::free && !own && w.left_us(us(now_ns)) == 0;
        // If this seat already holds the token, a predecessor on the seat took the token.
        if (w.kind == turn_kind::free || own || late) {
            if (!block_->token.compare_exchange_strong(raw, mine, std::memory_order_seq_cst)) continue;
            // The bit of the late seat is cleared, too, so that the token is not offered to it until it
            // requests the token again.
            block_->wanted.fetch_and(late ? ~(bit(seat_) | bit(w.seat)) : ~bit(seat_),
                                     std::memory_order_seq_cst);
            return late ? taking::from_late : taking::yes;
        }
        if ((block_->wanted.load(std::memory_order_seq_cst) & bit(seat_)) != 0) return taking::no;
        block_->wanted.fetch_or(bit(seat_), std::memory_order_seq_cst);  // and check again
    }
}

bool turn::renew(u64 now_ns, u32 limit_us) noexcept {
    u64 raw = block_->token.load(std::memory_order_relaxed);
    const turn_word w = turn_word::of(raw);
    if (w.kind != turn_kind::held || w.seat != seat_) return false;
    const shm::block_open open;
    return block_->token.compare_exchange_strong(
        raw, turn_word{turn_kind::held, seat_, limit_us, us(now_ns)}.pack(), std::memory_order_seq_cst);
}

u32 turn::next_of(u64 wanted) const noexcept {
    const u64 others = wanted & ~bit(seat_);
    if (others == 0) return shm::none;
    const u64 following = seat_ + 1 < 64 ? others & ~(bit(seat_ + 1) - 1) : 0;
    return static_cast<u32>(std::countr_zero(following != 0 ? following : others));
}

// Changes the token from `from` to OFFERED for the next seat. Returns false if no other seat wants the token.
bool turn::offer(u64 from, u64 now_ns) noexcept {
    const u32 next = next_of(block_->wanted.load(std::memory_order_seq_cst));
    if (next == shm::none) return false;
    const u64 offered = turn_word{turn_kind::offered, next, offer_us, us(now_ns)}.pack();
    if (!block_->token.compare_exchange_strong(from, offered, std::memory_order_seq_cst)) return true;
    const u32 stage = control_->seat[next].stage;
    if (stage < shm::max_stages) shm::ring(control_->stage[stage].doorbell);
    return true;
}

void turn::pass_on(u64 now_ns) noexcept {
    const u64 held = block_->token.load(std::memory_order_relaxed);
    const turn_word w = turn_word::of(held);
    if (w.kind != turn_kind::held || w.seat != seat_) return;  // taken over
    const shm::block_open open;
    if (offer(held, now_ns)) return;
    u64 expected = held;
    if (!block_->token.compare_exchange_strong(expected, 0, std::memory_order_seq_cst)) return;
    // A seat that has set its bit since the check may have found the token held, so the token is offered to
    // it now.
    (void)offer(0, now_ns);
}

void turn::cancel_wait() noexcept {
    if ((block_->wanted.load(std::memory_order_relaxed) & bit(seat_)) == 0) return;
    const shm::block_open open;
    block_->wanted.fetch_and(~bit(seat_), std::memory_order_seq_cst);
}

bool turn::has_waiters() const noexcept {
    return (block_->wanted.load(std::memory_order_seq_cst) & ~bit(seat_)) != 0;
}

u64 turn::patience_ns(u64 now_ns) const noexcept {
    const turn_word w = turn_word::of(block_->token.load(std::memory_order_relaxed));
    return w.kind == turn_kind::free ? 1000 : std::max<u64>(1, w.left_us(us(now_ns))) * 1000;
}

}  // namespace carousel::ring
