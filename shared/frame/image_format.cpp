#include "frame/image_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/errors.hpp"

namespace carousel::ring {
namespace {

constexpr const char* matrix_constant = "yuv_matrix";
constexpr const char* range_constant = "full_range";

std::string type_of(pixel_format pixels) { return fmt::format("carousel.image.{}", name_of(pixels)); }

/// Compares all but the offset.
bool is_same_plane(const plane& expected, const plane& other) {
    plane at = expected;
    at.offset = other.offset;
    return at == other;
}

}  // namespace

const char* name_of(pixel_format pixels) noexcept {
    switch (pixels) {
        case pixel_format::rgba8:
            return "rgba8";
        case pixel_format::rgba16:
            return "rgba16";
        case pixel_format::gray8:
            return "gray8";
        case pixel_format::nv12:
            return "nv12";
    }
    return "unknown";
}

std::optional<pixel_format> pixel_format_named(std::string_view name) noexcept {
    for (const pixel_format each : pixel_formats)
        if (name == name_of(each)) return each;
    return std::nullopt;
}

yuv_colours colours_of(const frame_format& format, u32 height) {
    yuv_colours out = usual_colours(height);
    if (const auto at = format.constants.find(matrix_constant); at != format.constants.end())
        out.matrix = at->second == 601 ? 601 : at->second == 2020 ? 2020 : 709;
    if (const auto at = format.constants.find(range_constant); at != format.constants.end())
        out.full_range = at->second != 0;
    return out;
}

frame_format image_format_of(pixel_format pixels, u32 width, u32 height, const yuv_colours& colours) {
    frame_format out{type_of(pixels), {}, {}};
    switch (pixels) {
        case pixel_format::rgba8:
            out.planes = {{"color", element::u8_, {height, width, 4}}};
            break;
        case pixel_format::rgba16:
            out.planes = {{"color", element::u16_, {height, width, 4}}};
            break;
        case pixel_format::gray8:
            out.planes = {{"gray", element::u8_, {height, width}}};
            break;
        case pixel_format::nv12:
            if (width % 2 != 0 || height % 2 != 0)
                throw config_error(fmt::format(
                    "an NV12 picture of {} x {} pixels is not possible: its width and height must be even",
                    width, height));
            out.planes = {{"y", element::u8_, {height, width}},
                          {"uv", element::u8_, {height / 2, width / 2, 2}}};
            out.constants = {{matrix_constant, colours.matrix},
                             {range_constant, colours.full_range ? 1.0 : 0.0}};
            break;
    }
    return out;
}

std::optional<image_description> image_in(const frame_format& format) {
    for (const pixel_format pixels : pixel_formats) {
        if (format.type != type_of(pixels) || format.planes.empty()) continue;
        const plane& first = format.planes.front();
        if (first.shape.size() < 2) continue;
        image_description out;
        out.pixels = pixels;
        out.width = static_cast<u32>(first.shape[1]);
        out.height = static_cast<u32>(first.shape[0]);
        out.first_plane = first.offset;
        const bool odd = out.width % 2 != 0 || out.height % 2 != 0;
        if (pixels == pixel_format::nv12 && odd) continue;
        out.colours = colours_of(format, out.height);
        const std::vector<plane> expected = image_format_of(pixels, out.width, out.height).planes;
        if (expected.size() > format.planes.size() ||
            !std::equal(expected.begin(), expected.end(), format.planes.begin(), is_same_plane))
            continue;
        if (pixels == pixel_format::nv12) out.uv_plane = format.planes[1].offset;
        return out;
    }
    return std::nullopt;
}

}  // namespace carousel::ring
