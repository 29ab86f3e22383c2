// Pictures of all formats as RGBA8.
#include "picture/rgba.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "tests/support/catch.hpp"

using namespace carousel;

namespace {

/// The equations of ITU-R BT.601, BT.709 and BT.2020 as they are written there.
std::array<u8, 3> exact(int y, int u, int v, const ring::yuv_colours& c) {
    const f64 light = c.full_range ? y / 255.0 : (y - 16) / 219.0;
    const f64 blue = (u - 128) / (c.full_range ? 255.0 : 224.0),
              red = (v - 128) / (c.full_range ? 255.0 : 224.0);
    const f64 r = light + 2 * (1 - c.red_part()) * red, b = light + 2 * (1 - c.blue_part()) * blue;
    const f64 g = (light - c.red_part() * r - c.blue_part() * b) / (1 - c.red_part() - c.blue_part());
    const auto in_bytes = [](f64 x) { return static_cast<u8>(std::lround(std::clamp(x, 0.0, 1.0) * 255)); };
    return {in_bytes(r), in_bytes(g), in_bytes(b)};
}

std::vector<u8> converted(ring::pixel_format pixels, u32 width, u32 height, const ring::yuv_colours& colours,
                          const std::vector<std::vector<u8>>& planes) {
    ring::frame_format format = ring::image_format_of(pixels, width, height, colours);
    std::vector<std::byte> slot(format.lay_out());
    for (std::size_t k = 0; k < planes.size(); ++k)
        std::copy(planes[k].begin(), planes[k].end(),
                  reinterpret_cast<u8*>(slot.data() + format.planes[k].offset));
    std::vector<u8> rgba(u64{width} * height * 4);
    to_rgba8(ring::image_in(format).value(), slot.data(), reinterpret_cast<std::byte*>(rgba.data()));
    return rgba;
}

}  // namespace

TEST_CASE("NV12 of each matrix and range becomes the colours of the equations, within 1") {
    constexpr u32 width = 128, height = 64;
    for (const u32 matrix : {601U, 709U, 2020U})
        for (const bool full : {false, true}) {
            CAPTURE(matrix, full);
            std::vector<u8> y(width * height), uv(width * height / 2);
            for (std::size_t k = 0; k < y.size(); ++k) y[k] = static_cast<u8>(k * 37 + k / 256);
            for (std::size_t k = 0; k < uv.size(); ++k) uv[k] = static_cast<u8>(k * 91 + k / 256);
            const auto rgba = converted(ring::pixel_format::nv12, width, height, {matrix, full}, {y, uv});
            int worst = 0;
            for (u32 row = 0; row < height; ++row)
                for (u32 x = 0; x < width; ++x) {
                    const std::size_t at = row * width + x, pair = row / 2 * width + x / 2 * 2;
                    const auto expected = exact(y[at], uv[pair], uv[pair + 1], {matrix, full});
                    for (std::size_t c = 0; c < 3; ++c)
                        worst = std::max(worst, std::abs(int{rgba[at * 4 + c]} - int{expected[c]}));
                }
            CHECK(worst <= 1);
            CHECK(rgba[3] == 255);
        }
}

TEST_CASE("grey values and values of 16 bits keep their brightness") {
    const auto grey = converted(ring::pixel_format::gray8, 2, 2, {}, {{0, 17, 128, 255}});
    CHECK(grey == std::vector<u8>{0, 0, 0, 255, 17, 17, 17, 255, 128, 128, 128, 255, 255, 255, 255, 255});
    // 0, 1/2, 1 and 257 * 3 as values of 16 bits, little-endian
    const auto wide =
        converted(ring::pixel_format::rgba16, 1, 1, {}, {{0, 0, 0x00, 0x80, 0xff, 0xff, 0x03, 0x03}});
    CHECK(wide == std::vector<u8>{0, 128, 255, 3});
}
