#pragma once
// The canary behind a slot that has no gap behind it: 64 KiB that the slot's maker fills with a pattern
// before anything of the stage's own first runs on that slot, and looks at behind each frame. A byte that has
// changed was written beyond the slot. One body for both backends; a queue does it (guarded_status.hpp).
//
// The pattern is that of a slot and of its maker's incarnation, so that one which was copied from another
// slot, or left by somebody who has died, is no whole canary. It stays from frame to frame: a byte that
// changes while the slot is free is found, too, with its next frame. It is no secret: it finds mistakes, not
// malice. A stray byte that happens to be the pattern's own changes nothing and is not found.
//
// Not found either: a write that jumps over all 64 KiB. One that goes through them and further has harmed the
// next slot when it is found; that slot's status word tells its readers.

#include <bit>

#include "core/host_device.hpp"
#include "core/types.hpp"

namespace carousel::device {

inline constexpr u64 canary_bytes = u64{64} * 1024;
inline constexpr u32 canary_words = canary_bytes / sizeof(u64);

/// What a look says: `canary_damaged` plus the offset of the first byte that has changed.
inline constexpr u32 canary_whole = 0, canary_damaged = 1;

/// A look is done in parts, side by side on a GPU, each with a word of its own. Only damage is written: a
/// store to host memory from each launch costs a frame more than the look. That it was done is known by the
/// event behind it.
inline constexpr u32 canary_parts = 32, canary_part_words = canary_words / canary_parts;
struct canary_check {
    u32 part[canary_parts];
    /// Before the look is enqueued.
    void clear() noexcept {
        for (u32& p : part) p = canary_whole;
    }
    /// Behind the event: the word of the first part that is damaged, else canary_whole.
    [[nodiscard]] u32 result() const noexcept {
        for (const u32& p : part)
            if (const u32 word = static_cast<const volatile u32&>(p); word != canary_whole) return word;
        return canary_whole;
    }
};

/// Of a slot whose frames that incarnation makes.
[[nodiscard]] CAROUSEL_HD_INLINE constexpr u64 canary_key(u32 link, u32 slot, u32 epoch) {
    u64 z = 0x9E37'79B9'7F4A'7C15 + (u64{link} << 56U | u64{slot} << 48U | epoch);
    z = (z ^ z >> 30U) * 0xBF58'476D'1CE4'E5B9;  // splitmix64's finaliser (S. Vigna)
    z = (z ^ z >> 27U) * 0x94D0'49BB'1331'11EB;
    return z ^ z >> 31U;
}

/// Word i of the pattern. Another key makes another word everywhere.
[[nodiscard]] CAROUSEL_HD_INLINE constexpr u64 canary_word(u64 key, u32 i) {
    return key + i * 0x9E37'79B9'7F4A'7C15;
}

/// Which byte of a word that differs is the first to: memory order is little-endian on both backends.
[[nodiscard]] CAROUSEL_HD_INLINE constexpr u32 first_changed_byte(u64 found, u64 expected) {
#if defined(__CUDA_ARCH__)  // where std::countr_zero compiles, and says 64 of everything (nvcc 13.0)
    return static_cast<u32>(__ffsll(static_cast<long long>(found ^ expected)) - 1) / 8;
#else
    return static_cast<u32>(std::countr_zero(found ^ expected)) / 8;
#endif
}

}  // namespace carousel::device
