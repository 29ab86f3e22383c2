#pragma once
// Parity: each word that protocol decisions depend on has an even number of set bits. One flipped bit makes
// that number odd, and an odd word has no valid value: a process that reads it takes no action and leaves the
// word to the supervisor (ring/words.hpp).
//
// number_word holds a plain number with this parity bit: the tail of a ring, END, or the sequence of a job.
// The number has 63 bits; the highest bit of the word is the parity bit. The eight largest 64-bit numbers,
// which stand for "not known" and similar values, are stored as the eight largest 63-bit numbers. An odd word
// is read as `Damaged`, a number that triggers no action.
//
// May be used by any process, like any word. Memory order: load() and store() use the order that the caller
// requests; cas() is acq_rel.

#include <atomic>
#include <bit>

#include "core/types.hpp"

namespace carousel::shm {

/// Returns true if the word has even parity: no single bit of the word has been flipped.
[[nodiscard]] constexpr bool intact(u64 raw) noexcept { return (std::popcount(raw) & 1) == 0; }
/// Returns `bits` with their parity stored in bit `at`, which must be 0 in `bits`.
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
    /// CAS from exactly this number; always fails on a damaged word.
    bool cas(u64 expected, u64 desired) noexcept {
        u64 raw = pack(expected);
        return raw_.compare_exchange_strong(raw, pack(desired), std::memory_order_acq_rel,
                                            std::memory_order_acquire);
    }
    /// The underlying word, for code that checks or repairs it.
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

/// T: a damaged tail reads as 0. A tail of 0 triggers no action: no position is below 0, and every frame in
/// the window after 0 is still checked by its lease word.
using tail_word = number_word<0>;
/// The number that means "no number" in END and in a job's sequence; a damaged word is read as this number.
inline constexpr u64 no_number = ~u64{0} - 2;
using end_word = number_word<no_number>;
using sequence_word = number_word<no_number>;

}  // namespace carousel::shm
