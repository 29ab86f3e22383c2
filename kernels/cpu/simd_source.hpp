// No include guard on purpose: included once by each cpu/simd_NAME.cpp, which defines CAROUSEL_SIMD (the
// namespace) and is compiled for one instruction set. Code in this file may call only functions that are
// forced inline or local to the namespace. For any other function, the linker could use the copy that was
// compiled for this instruction set in the whole program.

#include "kernels/body/block_hash.hpp"
#include "kernels/body/clip.hpp"
#include "kernels/body/cluster.hpp"
#include "kernels/body/mip.hpp"
#include "kernels/body/sharpen.hpp"
#include "kernels/cpu/entries.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define CAROUSEL_FORCE static inline __attribute__((always_inline))

namespace carousel::kernels::cpu::CAROUSEL_SIMD {

using namespace body;  // NOLINT: the whole file is built from these functions

#if defined(__AVX512F__)
inline constexpr u32 lanes = 16;  ///< words per vector
#else
inline constexpr u32 lanes = 8;
#endif

/// Returns a word in which bit l is the sign of word l of `lanes`.
CAROUSEL_FORCE u32 mask_of(const i32* words) {
#if defined(__AVX512F__)
    return _mm512_cmplt_epi32_mask(_mm512_load_si512(words), _mm512_setzero_si512());
#elif defined(__AVX2__)
    return static_cast<u32>(
        _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(words)))));
#else
    u32 mask = 0;
    for (u32 l = 0; l < lanes; ++l) mask |= (static_cast<u32>(words[l]) >> 31) << l;
    return mask;
#endif
}

namespace {
// Each of these files uses declarations of the preceding files.
// clang-format off
#include "kernels/cpu/gather.hpp"
#include "kernels/cpu/vertices.hpp"
#include "kernels/cpu/bins.hpp"
#include "kernels/cpu/tiles.hpp"
#include "kernels/cpu/resolve.hpp"
#include "kernels/cpu/resolve_mapped.hpp"
#include "kernels/cpu/hash_loop.hpp"
// clang-format on

void sharpen_rows(const sharpen_args& args, u32 begin, u32 end) {
    const u32* const in = reinterpret_cast<const u32*>(args.in);
    u32* const out = reinterpret_cast<u32*>(args.out);
    const i32 width = static_cast<i32>(args.width), height = static_cast<i32>(args.height),
              strength = static_cast<i32>(args.strength);
    for (i32 y = static_cast<i32>(begin); y < static_cast<i32>(end); ++y) {
        for (i32 x = 0; x < width; ++x)
            out[static_cast<i64>(y) * width + x] = sharpen_pixel(in, width, height, x, y, strength);
    }
}
}  // namespace

extern const entries table;
const entries table{CAROUSEL_SIMD_NAME, cluster,        bin, raster_tile, resolve_tile,
                    sharpen_rows,       hash_columns_of};

}  // namespace carousel::kernels::cpu::CAROUSEL_SIMD
