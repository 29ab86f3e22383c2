#pragma once
// One hash of a plane's bytes, the same on every device: "carousel.blocks4k.v1".
//
// Input: the plane's bytes in row order, without the padding that a pitch leaves between the rows. The bytes
// are split into blocks of 4096 bytes; the last one is padded with zeros. A block is 16 rows of 32 words
// (u64, little-endian): on a GPU, half a warp processes a block with two columns per lane, and reads 128
// adjacent bytes at once; on a CPU, four vectors of 512 bits contain all columns. All sums and products are
// modulo 2^64.
//
//   golden      0x9E3779B97F4A7C15
//   mix(z)      z ^= z >> 30; z *= 0xBF58476D1CE4E5B9; z ^= z >> 27; z *= 0x94D049BB133111EB; z ^= z >> 31
//   key(c)      mix((c + 1) * golden)
//   column c    a = 0; for row r = 0 .. 15:  x = word[r][c] ^ (key(c) + r * golden)
//               a = rotate_left(a, 29) + word[r][c xor 16] + (x mod 2^32) * (x div 2^32)
//   block b     t(b) = mix(sum over c of mix(a(c) + key(c)) + (b + 1) * golden)
//   plane       mix(sum over b of t(b) + mix(bytes + golden)), `bytes` of the plane, without the zeros
//
// Source: the step is that of XXH3 (Y. Collet, xxhash 0.8): it multiplies the two 32-bit halves of the keyed
// word, and adds the word itself to a neighbour's sum. This hash adds a rotation to the step, so that the
// order within a column matters even without the keys. After 16 steps this hash applies a full mix to the
// column, where XXH3 applies a scramble. mix and the keys are splitmix64's (S. Vigna; finaliser "Mix13" of
// D. Stafford). Guarantee: a change within one word always changes the value a of the neighbour column,
// because all later steps of that column are one-to-one functions. Therefore it also changes the hashes of
// the block and of the plane, except with probability 2^-64. A term that depends on the column, the block or
// the length is added before each mix, so that the hash distinguishes equal data in different columns or
// blocks, or of different lengths. The sums are independent of order, so the values of lanes, blocks and
// threads may be added in any order. The hash does not protect against an adversary. Reasons for 4096 bytes:
// a 720p picture then has 900 blocks, which keep a large GPU busy, and the work per block in addition to its
// steps (32 mixes for 512 words) is small on both devices.

#include "core/host_device.hpp"
#include "core/types.hpp"

namespace carousel::kernels::body {

inline constexpr u32 hash_columns = 32, hash_rows = 16;
inline constexpr u64 hash_block_bytes = u64{hash_columns} * hash_rows * 8;
inline constexpr u64 hash_golden = 0x9E37'79B9'7F4A'7C15;

[[nodiscard]] CAROUSEL_HD_INLINE constexpr u64 hash_mix(u64 z) {
    z = (z ^ z >> 30U) * 0xBF58'476D'1CE4'E5B9;
    z = (z ^ z >> 27U) * 0x94D0'49BB'1331'11EB;
    return z ^ z >> 31U;
}
[[nodiscard]] CAROUSEL_HD_INLINE constexpr u64 hash_key(u32 column) {
    return hash_mix((u64{column} + 1) * hash_golden);
}

/// Adds one word to a column. `key` is hash_key(column) + row * hash_golden; `partner` is the word in the
/// same row of the column whose number is (column xor 16).
[[nodiscard]] CAROUSEL_HD_INLINE constexpr u64 hash_step(u64 a, u64 own, u64 partner, u64 key) {
    const u64 x = own ^ key;
    return (a << 29U | a >> 35U) + partner + (x & 0xffff'ffffU) * (x >> 32U);
}
/// Returns the term that a column adds to the sum of its block.
[[nodiscard]] CAROUSEL_HD_INLINE constexpr u64 hash_column(u64 a, u64 key) { return hash_mix(a + key); }
/// Returns the term that a block adds to the sum of its plane.
[[nodiscard]] CAROUSEL_HD_INLINE constexpr u64 hash_block(u64 sum, u64 index) {
    return hash_mix(sum + (index + 1) * hash_golden);
}
/// The plane's hash.
[[nodiscard]] CAROUSEL_HD_INLINE constexpr u64 hash_finished(u64 sum, u64 bytes) {
    return hash_mix(sum + hash_mix(bytes + hash_golden));
}

/// A plane's bytes: `rows` rows of `row_bytes` bytes each; a row begins `pitch` bytes after the previous one.
struct hash_view {
    const unsigned char* data;
    u64 row_bytes, rows, pitch;
    [[nodiscard]] CAROUSEL_HD_INLINE u64 bytes() const { return row_bytes * rows; }
    [[nodiscard]] CAROUSEL_HD_INLINE u64 blocks() const {
        return (bytes() + hash_block_bytes - 1) / hash_block_bytes;
    }
    [[nodiscard]] CAROUSEL_HD_INLINE bool dense() const { return pitch == row_bytes || rows <= 1; }
    [[nodiscard]] CAROUSEL_HD_INLINE unsigned char byte(u64 at) const {
        return dense() ? data[at] : data[at / row_bytes * pitch + at % row_bytes];
    }
    /// Returns the word at byte offset `at` of the plane; bytes after the plane's end read as zero.
    [[nodiscard]] CAROUSEL_HD_INLINE u64 word(u64 at) const {
        u64 out = 0;
        const u64 end = bytes();
        for (u32 k = 0; k < 8; ++k) out |= at + k < end ? u64{byte(at + k)} << (8 * k) : 0;
        return out;
    }
};

}  // namespace carousel::kernels::body
