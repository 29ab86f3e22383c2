#pragma once
// Stages take turns on a GPU that several contexts of a run share. If contexts run without turns, the GPU
// switches between them in the middle of their frames. A stage that has the turn begins several frames in a
// row, and each other stage begins its own frames when it has the turn.
//
//   token    {kind:2, seat:6, limit_us:16, since_us:40}   0: free
//            HELD     the seat begins frames
//            OFFERED  the seat wants the token and may take it
//            A token of either kind that is older than its limit is late: any process that wants the token
//            takes it over.
//   wanted   one bit per seat: the seat has a frame to begin, and waits
//
// The token is a hint. No word of the ring depends on it: a stage may begin a frame at any time, with or
// without the token, and the model (tests/model) lets every stage do so. So no safety property depends on the
// token, and a wild value in it costs at most one limit.
//
// What a crash leaves: a token HELD or OFFERED, which is late after its limit (20 ms at most), and a seat's
// bit in `wanted`. The process that takes over the late token of that seat clears the bit. A stopped process
// is treated like a dead process; when it resumes, it requests the token again.
//
// Memory order: the token publishes no data. A stage that wants the token sets its bit and then reads the
// token; a stage that releases the token frees it and then reads the bits. Both stages use sequentially
// consistent order for this, so at least one of them reads the other's store. If the process that should ring
// the doorbell has died, the doorbell does not ring; the wait is then bounded by the token's limit.
//
// Called by the process that holds the seat.

#include "ring/words.hpp"

namespace carousel::ring {

enum class turn_kind : u8 { free, offered, held };

struct turn_word {
    turn_kind kind = turn_kind::free;
    u32 seat = 0;
    u32 limit_us = 0;  ///< its maximum age
    u64 since_us = 0;  ///< the low 40 bits of CLOCK_MONOTONIC

    static constexpr unsigned clock_bits = 40;
    [[nodiscard]] static constexpr turn_word of(u64 w) {
        return {static_cast<turn_kind>(field(w, 62, 2)), static_cast<u32>(field(w, 56, 6)),
                static_cast<u32>(field(w, 40, 16)), field(w, 0, clock_bits)};
    }
    [[nodiscard]] constexpr u64 pack() const {
        return place(static_cast<u64>(kind), 62, 2) | place(seat, 56, 6) | place(limit_us, 40, 16) |
               place(since_us, 0, clock_bits);
    }
    /// Time in us until any process may take the token over; 0: now.
    [[nodiscard]] constexpr u64 left_us(u64 now_us) const {
        constexpr u64 mask = (u64{1} << clock_bits) - 1;
        const u64 age = (now_us - since_us) & mask, ahead = (since_us - now_us) & mask;
        // `since_us` is later than `now_us`: its writer has read the clock after this process.
        if (age != 0 && ahead <= limit_us) return limit_us;
        return age >= limit_us ? 0 : limit_us - age;
    }
    bool operator==(const turn_word&) const = default;
};

inline constexpr u32 least_turn_us = 2'000, longest_turn_us = 20'000;
/// An offer that is not taken is late after this time.
inline constexpr u32 offer_us = 2'000;

class turn {
public:
    /// `token`: an index below shm::max_turns. Does not throw; an out-of-range index ends the process.
    turn(shm::control_block& c, u32 token, u32 seat) noexcept;

    enum class taking : u8 { no, yes, from_late };
    /// Takes a token that is free, offered to this seat, or late. If the result is `no`, the seat's bit is
    /// set, and the doorbell of its stage rings when the token is offered to the seat.
    [[nodiscard]] taking take(u64 now_ns, u32 limit_us) noexcept;
    /// Restarts the token's time limit now. Returns false if the token does not belong to this seat any more.
    [[nodiscard]] bool renew(u64 now_ns, u32 limit_us) noexcept;
    /// Offers the token to the next seat, in the order of the seats after this seat, that wants it; frees the
    /// token if no other seat wants it. No effect if the token does not belong to this seat any more.
    void pass_on(u64 now_ns) noexcept;
    /// To be called when this seat no longer has a frame to begin.
    void cancel_wait() noexcept;
    [[nodiscard]] bool has_waiters() const noexcept;
    /// The longest time in ns for which a process has to wait for the token: after that the token is late. At
    /// least 1 us.
    [[nodiscard]] u64 patience_ns(u64 now_ns) const noexcept;

private:
    [[nodiscard]] u32 next_of(u64 wanted) const noexcept;
    [[nodiscard]] bool offer(u64 from, u64 now_ns) noexcept;

    shm::control_block* control_;
    shm::turn_block* block_;
    u32 seat_;
};

}  // namespace carousel::ring
