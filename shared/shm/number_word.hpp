#pragma once
// Parity: each word that decides bears an even number of set bits. One flipped bit makes it odd, and an odd
// word says nothing at all: whoever reads it acts on nothing and leaves it to the supervisor
// (ring/words.hpp).
//
// number_word holds a plain number with that bit: the tail of a ring, END, the sequence of a job. 63 bits,
// and the highest of the word for parity. The eight largest numbers of 64 bits, which stand for "not known"
// and the like, are kept as the eight largest of 63. `Damaged` is what an odd word reads as: a number from
// which nothing follows.
//
// Who may call: as for any word. Memory order: as of the word beneath, load acquire, store and CAS as asked.

#include <atomic>
#include <bit>

#include "core/types.hpp"

namespace carousel::shm {

/// Even parity: a word that nobody has damaged by one bit.
[[nodiscard]] constexpr bool intact(u64 raw) noexcept { return (std::popcount(raw) & 1) == 0; }
/// `bits` with its parity in bit `at`, which must be 0 in it.
[[nodiscard]] constexpr u64 with_parity(u64 bits, unsigned at) noexcept {
    return bits | static_cast<u64>(std::popcount(bits) & 1) << at;
}

template <u64 Damaged>
class number_word {
public:
    static constexpr u64 damaged = Damaged;
    static constexpr u64 highest = (u64{1} << 63U) - 1, special = 8;

    [[nodiscard]] static constexpr u64 pack(u64 number) noexcept { return with_parity(number & highest, 63); }
    [[nodiscard]] static constexpr u64 unpack(u64 raw) noexcept {
        if (!intact(raw)) return Damaged;
        const u64 number = raw & highest;
        return number > highest - special ? number | ~highest : number;
    }
    [[nodiscard]] u64 load(std::memory_order order = std::memory_order_acquire) const noexcept {
        return unpack(raw_.load(order));
    }
    void store(u64 number, std::memory_order order = std::memory_order_release) noexcept {
        raw_.store(pack(number), order);
    }
    /// The CAS of this very number; one that is damaged is nobody's to change.
    bool cas(u64 expected, u64 desired) noexcept {
        u64 raw = pack(expected);
        return raw_.compare_exchange_strong(raw, pack(desired), std::memory_order_acq_rel,
                                            std::memory_order_acquire);
    }
    /// The word itself, for whoever checks or mends it.
    [[nodiscard]] std::atomic<u64>& raw() noexcept { return raw_; }
    [[nodiscard]] const std::atomic<u64>& raw() const noexcept { return raw_; }

private:
    std::atomic<u64> raw_;
};

template <u64 Damaged>
bool cas(number_word<Damaged>& at, u64 expected, u64 desired) noexcept {
    return at.cas(expected, desired);
}
template <u64 Damaged>
u64 load(const number_word<Damaged>& at) noexcept {
    return at.load();
}

/// T: a damaged one reads as 0, of which nothing follows: nothing lies below it, and no frame is in the
/// window behind it that a lease's own word would not refuse.
using tail_word = number_word<0>;
/// END, or a job's sequence: a number that is none.
inline constexpr u64 no_number = ~u64{0} - 2;
using end_word = number_word<no_number>;
using sequence_word = number_word<no_number>;

}  // namespace carousel::shm
