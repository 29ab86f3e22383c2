#pragma once
// Stores and loads the status word on the CPU, by one store or load of 16 bytes. The status word only detects
// torn frames and is not authoritative, so an architecture without such a store may use several smaller ones:
// a mixture of two words equals neither of them.

#include <bit>
#include <cstring>

#include "device/backend.hpp"
#include "device/canary.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace carousel::device::cpu {

inline void store_status(status_word* at, status_word value) noexcept {
#if defined(__SSE2__)
    _mm_store_si128(reinterpret_cast<__m128i*>(at), std::bit_cast<__m128i>(value));
    _mm_mfence();  // orders WRITING before the payload's stores
#elif defined(__ARM_NEON)
    asm volatile("dmb ish" ::: "memory");  // orders READY after the payload's stores
    vst1q_u8(reinterpret_cast<u8*>(at), std::bit_cast<uint8x16_t>(value));
    asm volatile("dmb ish" ::: "memory");
#else
    __atomic_store(&at->ring_sequence, &value.ring_sequence, __ATOMIC_SEQ_CST);
    __atomic_store(&at->epoch, &value.epoch, __ATOMIC_SEQ_CST);
    __atomic_store(&at->state, &value.state, __ATOMIC_SEQ_CST);
#endif
}

[[nodiscard]] inline bool status_equals(const status_word* at, status_word expected) noexcept {
    status_word found{};
#if defined(__SSE2__)
    found = std::bit_cast<status_word>(_mm_load_si128(reinterpret_cast<const __m128i*>(at)));
    asm volatile("" ::: "memory");
#elif defined(__ARM_NEON)
    asm volatile("dmb ish" ::: "memory");  // orders the final check after the payload's loads
    found = std::bit_cast<status_word>(vld1q_u8(reinterpret_cast<const u8*>(at)));
    asm volatile("dmb ish" ::: "memory");
#else
    __atomic_load(&at->ring_sequence, &found.ring_sequence, __ATOMIC_SEQ_CST);
    __atomic_load(&at->epoch, &found.epoch, __ATOMIC_SEQ_CST);
    __atomic_load(&at->state, &found.state, __ATOMIC_SEQ_CST);
#endif
    return std::memcmp(&found, &expected, sizeof found) == 0;
}

// A canary's pattern is written and checked on the CPU by plain stores and loads, in queue order. These
// checks detect damage and are not authoritative, so a concurrent write by another process may or may not be
// detected.

inline void plant_canary(u64* at, u64 key) noexcept {
    for (u32 i = 0; i < canary_words; ++i) at[i] = canary_word(key, i);
}

/// Checks one part. Returns the word that canary_step::found gets for that part: canary_whole, or the
/// position of the first damage.
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
