#pragma once
// The canary after a slot without a gap: 64 KiB of memory. The slot's producer fills this memory with a
// pattern before any code of the stage first runs on that slot, and checks the pattern after each frame. A
// byte that has changed was written by an out-of-bounds write. Both backends use the same implementation,
// which a queue runs.
// The pattern depends on the slot and on its producer's incarnation, so a pattern that was copied from
// another slot, or left by a dead incarnation, is detected as damaged. The pattern is not rewritten for each
// frame, so a byte that changes while the slot is free is detected when the slot's next frame is checked. The
// pattern is not a secret: it detects mistakes, not malice. A wild write that happens to write the pattern's
// own value changes nothing and is not detected. A write that skips all 64 KiB is not detected either. If a
// write covers the whole canary and continues into the next slot, that slot is already damaged when the check
// detects the write; the readers of that slot detect the damage by its status word.

#include <bit>
#include <span>

#include "core/host_device.hpp"
#include "core/types.hpp"
#include "device/backend.hpp"

namespace carousel::device {

inline constexpr u64 canary_bytes = u64{64} * 1024;
inline constexpr u32 canary_words = canary_bytes / sizeof(u64);

/// The result of a check: canary_whole, or `canary_damaged` plus the offset of the first changed byte.
inline constexpr u32 canary_whole = 0, canary_damaged = 1;

/// A check is divided into parts, which run concurrently on a GPU; each part has its own result word. A part
/// writes its word only if it finds damage, because one store to host memory per launch would cost more than
/// the check itself. When the event that was recorded after the check is complete, the check has run.
inline constexpr u32 canary_parts = 32, canary_part_words = canary_words / canary_parts;
struct canary_check {
    u32 part[canary_parts];
    /// Called before the check is enqueued.
    void clear() noexcept {
        for (u32& p : part) p = canary_whole;
    }
    /// Called when the event that follows the check is complete: returns the word of the first damaged part,
    /// or canary_whole if no part is damaged.
    [[nodiscard]] u32 result() const noexcept {
        for (const u32& p : part)
            if (const u32 word = static_cast<const volatile u32&>(p); word != canary_whole) return word;
        return canary_whole;
    }
};

/// Returns the key of a slot whose producer is the incarnation `epoch`.
[[nodiscard]] CAROUSEL_HD_INLINE constexpr u64 canary_key(u32 link, u32 slot, u32 epoch) {
    u64 z = 0x9E37'79B9'7F4A'7C15 + (u64{link} << 56U | u64{slot} << 48U | epoch);
    z = (z ^ z >> 30U) * 0xBF58'476D'1CE4'E5B9;  // splitmix64's finaliser (S. Vigna)
    z = (z ^ z >> 27U) * 0x94D0'49BB'1331'11EB;
    return z ^ z >> 31U;
}

/// Returns word i of the pattern. Two different keys give different words at every i.
[[nodiscard]] CAROUSEL_HD_INLINE constexpr u64 canary_word(u64 key, u32 i) {
    return key + i * 0x9E37'79B9'7F4A'7C15;
}

/// Returns the index of the first byte that differs; memory order is little-endian on both backends.
[[nodiscard]] CAROUSEL_HD_INLINE constexpr u32 first_changed_byte(u64 found, u64 expected) {
#if defined(__CUDA_ARCH__)  // with nvcc 13.0, std::countr_zero returns 64 for every value here
    return static_cast<u32>(__ffsll(static_cast<long long>(found ^ expected)) - 1) / 8;
#else
    return static_cast<u32>(std::countr_zero(found ^ expected)) / 8;
#endif
}

// These functions write or check canaries, together with status words, in a single step of a queue. On a GPU
// the step is one launch, which can be part of a frame's graph. Threading: to be called by the thread that
// may enqueue on the queue.

struct canary_step {
    u64* at = nullptr;              ///< canary_bytes of ring memory, 16-byte aligned
    u64 key = 0;                    ///< canary_key()
    canary_check* found = nullptr;  ///< host-visible (allocate_host), cleared; unused by plant_canaries()
};
inline constexpr std::size_t most_canaries = 2 * status_step::most;  ///< inputs and outputs

/// Enqueues the same step as queue::status(), and in addition a check of each canary; there may be at most
/// `most_canaries`. The checks run after the work that is already in the queue and before later work. The
/// checks have no order relative to the status words or to each other.
///
/// If `at_once` is true, a CPU checks the canaries immediately, on the calling thread. This is for callers
/// that do the work themselves instead of enqueuing it. In that case no entry of the queue may still use one
/// of the canaries.
void guarded_status(queue& on, const status_step& step, std::span<const canary_step> canaries,
                    bool at_once = false);

/// Writes the patterns of at most `most_canaries` canaries. On a GPU this happens after the work in the queue
/// and before later work. For a CPU queue the patterns are written immediately, on the calling thread,
/// because on a CPU the caller's own code also writes to ring memory, and what that code writes later must
/// come after the pattern. Therefore no entry of the queue may still use one of the canaries. This condition
/// is met if the caller fills a slot that was free.
void plant_canaries(queue& on, std::span<const canary_step> canaries);

}  // namespace carousel::device
