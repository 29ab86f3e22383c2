#pragma once
// The canary after a slot without a gap: 64 KiB that the slot's producer fills with a pattern before any code
// of the stage first runs on that slot, and checks after each frame. A byte that has changed was written by
// an out-of-bounds write. One implementation for both backends; a queue runs it.
// The pattern depends on the slot and on its producer's incarnation, so a pattern that was copied from
// another slot, or left by a dead incarnation, does not pass as intact. The pattern is kept from frame to
// frame: a byte that changes while the slot is free is detected with the slot's next frame. The pattern is
// not a secret: it detects mistakes, not malice. A wild write that happens to write the pattern's own value
// changes nothing and is not detected.
// A write that skips all 64 KiB is not detected either. A write that covers the canary and continues has
// damaged the next slot by the time the write is detected; the next slot's status word reports the damage to
// its readers.

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

/// A check is divided into parts, which run concurrently on a GPU, each with its own word. The check writes
/// only if it finds damage, because a store to host memory from each launch would cost more per frame than
/// the check. Completion of the event after the check shows that the check has run.
inline constexpr u32 canary_parts = 32, canary_part_words = canary_words / canary_parts;
struct canary_check {
    u32 part[canary_parts];
    /// To be called before the check is enqueued.
    void clear() noexcept {
        for (u32& p : part) p = canary_whole;
    }
    /// To be called after the event: returns the word of the first damaged part, or else canary_whole.
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

/// Returns word i of the pattern. A different key gives a different word at every i.
[[nodiscard]] CAROUSEL_HD_INLINE constexpr u64 canary_word(u64 key, u32 i) {
    return key + i * 0x9E37'79B9'7F4A'7C15;
}

/// Returns the index of the first byte that differs; memory order is little-endian on both backends.
[[nodiscard]] CAROUSEL_HD_INLINE constexpr u32 first_changed_byte(u64 found, u64 expected) {
#if defined(__CUDA_ARCH__)  // std::countr_zero compiles for it, but returns 64 for every value (nvcc 13.0)
    return static_cast<u32>(__ffsll(static_cast<long long>(found ^ expected)) - 1) / 8;
#else
    return static_cast<u32>(std::countr_zero(found ^ expected)) / 8;
#endif
}

// Status words and canaries as one step of a queue; on a GPU the step is one launch, which a frame's graph
// may contain. Threading: the thread that may enqueue on the queue.

struct canary_step {
    u64* at = nullptr;              ///< canary_bytes of ring memory, 16-byte aligned
    u64 key = 0;                    ///< canary_key()
    canary_check* found = nullptr;  ///< host-visible (allocate_host), cleared; unused by plant_canaries()
};
inline constexpr std::size_t most_canaries = 2 * status_step::most;  ///< inputs and outputs

/// queue::status(), plus a check of each of the canaries, at most `most_canaries`. The checks run after the
/// work in the queue and before later work, in no order relative to the status words and to each other.
///
/// `at_once`: on the CPU the check is done immediately, on this thread, for a caller whose own code then does
/// the work instead of the queue. In that case no entry of the queue may still use one of the canaries.
void guarded_status(queue& on, const status_step& step, std::span<const canary_step> canaries,
                    bool at_once = false);

/// Writes the patterns of at most `most_canaries` canaries. On a GPU this happens after the work in the queue
/// and before later work. A CPU queue plants immediately, on this thread: there the caller's own code also
/// writes to ring memory, and its writes after this call must come after the pattern. Therefore no entry of
/// the queue may still use one of the canaries. A caller that fills a slot that was free fulfils this
/// condition.
void plant_canaries(queue& on, std::span<const canary_step> canaries);

}  // namespace carousel::device
