#pragma once
// A canary's pattern on the CPU: plain stores and loads, in queue order. They detect damage and are not
// authoritative, so a concurrent write by another process may or may not be detected.

#include "device/canary.hpp"

namespace carousel::device::cpu {

inline void plant_canary(u64* at, u64 key) noexcept {
    for (u32 i = 0; i < canary_words; ++i) at[i] = canary_word(key, i);
}

/// Returns the value for one part of canary_step::found: canary_whole, or the first damage.
[[nodiscard]] inline u32 check_canary(const u64* at, u64 key, u32 part) noexcept {
    const u32 begin = part * canary_part_words, end = begin + canary_part_words;
    u64 differ = 0;
    for (u32 i = begin; i < end; ++i) differ |= at[i] ^ canary_word(key, i);
    if (differ == 0) return canary_whole;
    for (u32 i = begin; i < end; ++i) {
        const u64 found = at[i], expected = canary_word(key, i);
        if (found != expected)
            return canary_damaged + i * u32{sizeof(u64)} + first_changed_byte(found, expected);
    }
    return canary_whole;
}

}  // namespace carousel::device::cpu
