#include "viewer/peek/shrink.hpp"

#include <algorithm>

namespace carousel::viewer {

small_picture shrink(const std::byte* rgba, u32 width, u32 height, u32 max_width, u32 max_height) {
    small_picture p;
    if (rgba == nullptr || width == 0 || height == 0 || max_width == 0 || max_height == 0) return p;
    p.width = std::min(width, max_width);
    p.height = static_cast<u32>(std::max<u64>(1, u64{height} * p.width / width));
    if (p.height > max_height) {
        p.height = max_height;
        p.width = static_cast<u32>(std::clamp<u64>(u64{width} * p.height / height, 1, width));
    }
    p.height = std::min(p.height, height);
    p.rgb.reserve(std::size_t{p.width} * p.height * 3);
    for (u32 y = 0; y < p.height; ++y) {
        const u64 y0 = u64{y} * height / p.height, y1 = std::max(y0 + 1, u64{y + 1} * height / p.height);
        for (u32 x = 0; x < p.width; ++x) {
            const u64 x0 = u64{x} * width / p.width, x1 = std::max(x0 + 1, u64{x + 1} * width / p.width);
            u64 sum[3] = {0, 0, 0};
            for (u64 v = y0; v < y1; ++v)
                for (u64 u = x0; u < x1; ++u)
                    for (std::size_t c = 0; c < 3; ++c)
                        sum[c] += std::to_integer<u64>(rgba[(v * width + u) * 4 + c]);
            for (const u64 s : sum) p.rgb += static_cast<char>(s / ((y1 - y0) * (x1 - x0)));
        }
    }
    return p;
}

}  // namespace carousel::viewer
