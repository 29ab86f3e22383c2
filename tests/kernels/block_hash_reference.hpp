#pragma once
// The hash of body/block_hash.hpp once more, word by word as its head defines it: slow and obvious.

#include <span>
#include <vector>

#include "core/types.hpp"

namespace carousel::test {

inline u64 reference_mix(u64 z) {
    z ^= z >> 30U, z *= 0xBF58476D1CE4E5B9ULL;
    z ^= z >> 27U, z *= 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
}

/// Returns the hash of consecutive bytes.
inline u64 reference_hash(std::span<const std::byte> bytes) {
    constexpr u64 golden = 0x9E3779B97F4A7C15ULL;
    u64 total = 0;
    for (u64 block = 0; block * 4096 < bytes.size(); ++block) {
        const auto word = [&](u64 row, u64 column) {
            u64 out = 0;
            for (u64 k = 8; k-- > 0;) {
                const u64 at = block * 4096 + (row * 32 + column) * 8 + k;
                out = out * 256 + (at < bytes.size() ? static_cast<u64>(bytes[at]) : 0);
            }
            return out;
        };
        u64 sum = 0;
        for (u64 c = 0; c < 32; ++c) {
            const u64 key = reference_mix((c + 1) * golden);
            u64 a = 0;
            for (u64 r = 0; r < 16; ++r) {
                const u64 x = word(r, c) ^ (key + r * golden);
                a = ((a << 29U) | (a >> 35U)) + word(r, c ^ 16U) +
                    (x % 0x100000000ULL) * (x / 0x100000000ULL);
            }
            sum += reference_mix(a + key);
        }
        total += reference_mix(sum + (block + 1) * golden);
    }
    return reference_mix(total + reference_mix(bytes.size() + golden));
}

}  // namespace carousel::test
