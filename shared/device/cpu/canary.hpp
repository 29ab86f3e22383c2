#pragma once
// A canary's pattern on the CPU: plain stores and loads, in queue order. They detect and decide nothing, so a
// word that another process writes meanwhile may be seen either way.

#include "device/canary.hpp"

namespace carousel::device::cpu {

inline void plant_canary(u64* at, u64 key) noexcept {
    for (u32 i = 0; i < canary_words; ++i) at[i] = canary_word(key, i);
}

/// What a part of canary_step::found gets.
[[nodiscard]] inline u32 look_at_canary(const u64* at, u64 key, u32 part) noexcept {
    constexpr u32 stretch = 512;  // words between two questions
    static_assert(canary_part_words % stretch == 0);
    const u32 begin = part * canary_part_words, end = begin + canary_part_words;
    for (u32 from = begin; from < end; from += stretch) {
        u64 differ = 0;
        for (u32 i = from; i < from + stretch; ++i) differ |= at[i] ^ canary_word(key, i);
        if (differ == 0) continue;
        for (u32 i = from; i < from + stretch; ++i) {
            const u64 found = at[i], expected = canary_word(key, i);
            if (found != expected)
                return canary_damaged + i * u32{sizeof(u64)} + first_changed_byte(found, expected);
        }
    }
    return canary_whole;
}

}  // namespace carousel::device::cpu
