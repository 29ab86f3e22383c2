// No include guard on purpose: part of cpu/simd_source.hpp, inside the namespace of one instruction set.
// Computes the columns of one block of body/block_hash.hpp with vectors.

#if defined(__AVX512F__)
inline constexpr u32 hash_lanes = 8;
#elif defined(__AVX2__)
inline constexpr u32 hash_lanes = 4;
#else
inline constexpr u32 hash_lanes = 2;
#endif
using hash_vector = u64 __attribute__((vector_size(hash_lanes * 8)));
/// The number of vectors that one pass keeps in registers for each half of the columns.
inline constexpr u32 hash_together = hash_lanes >= 4 ? hash_columns / 2 / hash_lanes : 4;

struct hash_keys {
    u64 of[hash_rows][hash_columns];
    constexpr hash_keys() : of() {
        for (u32 r = 0; r < hash_rows; ++r)
            for (u32 c = 0; c < hash_columns; ++c) of[r][c] = hash_key(c) + r * hash_golden;
    }
};
alignas(64) constexpr hash_keys keys_of_hash;

CAROUSEL_FORCE hash_vector load_words(const void* from) {
    hash_vector v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
}
/// (x mod 2^32) * (x div 2^32); without the intrinsic GCC emits three products.
CAROUSEL_FORCE hash_vector product_of_halves(hash_vector x) {
#if defined(__AVX512F__)
    // Uses the masked form with all lanes enabled: for the plain form GCC 12 warns that its pass-through is
    // not initialised.
    return reinterpret_cast<hash_vector>(
        _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(x >> 32U)));
#elif defined(__AVX2__)
    return reinterpret_cast<hash_vector>(
        _mm256_mul_epu32(reinterpret_cast<__m256i>(x), reinterpret_cast<__m256i>(x >> 32U)));
#elif defined(__SSE2__)
    return reinterpret_cast<hash_vector>(
        _mm_mul_epu32(reinterpret_cast<__m128i>(x), reinterpret_cast<__m128i>(x >> 32U)));
#else
    return (x & 0xffff'ffffU) * (x >> 32U);
#endif
}
/// hash_step and hash_mix of body/ for a vector of columns at once.
CAROUSEL_FORCE hash_vector hash_steps(hash_vector a, hash_vector own, hash_vector partner, hash_vector key) {
    return (a << 29U | a >> 35U) + partner + product_of_halves(own ^ key);
}
CAROUSEL_FORCE hash_vector hash_mixes(hash_vector z) {
    z = (z ^ z >> 30U) * 0xBF58'476D'1CE4'E5B9;
    z = (z ^ z >> 27U) * 0x94D0'49BB'1331'11EB;
    return z ^ z >> 31U;
}

/// Returns the sum over the columns of a block of hash_block_bytes bytes; the block may have any alignment.
u64 hash_columns_of(const unsigned char* block) {
    constexpr u32 half = hash_columns / 2;
    hash_vector sum{};
    for (u32 first = 0; first < half; first += hash_together * hash_lanes) {
        hash_vector low[hash_together] = {}, high[hash_together] = {};
#pragma GCC unroll 2
        for (u32 r = 0; r < hash_rows; ++r) {
            const u64* const key = keys_of_hash.of[r] + first;
            const unsigned char* const at = block + (r * hash_columns + first) * 8;
#pragma GCC unroll 8
            for (u32 k = 0; k < hash_together; ++k) {
                const hash_vector l = load_words(at + k * sizeof sum),
                                  h = load_words(at + half * 8 + k * sizeof sum);
                low[k] = hash_steps(low[k], l, h, load_words(key + k * hash_lanes));
                high[k] = hash_steps(high[k], h, l, load_words(key + half + k * hash_lanes));
            }
        }
#pragma GCC unroll 8
        for (u32 k = 0; k < hash_together; ++k) {
            sum += hash_mixes(low[k] + load_words(keys_of_hash.of[0] + first + k * hash_lanes));
            sum += hash_mixes(high[k] + load_words(keys_of_hash.of[0] + first + half + k * hash_lanes));
        }
    }
    u64 total = 0;
    for (u32 l = 0; l < hash_lanes; ++l) total += sum[l];
    return total;
}
