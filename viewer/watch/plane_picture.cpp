#include "viewer/watch/plane_picture.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "frame/metadata.hpp"
#include "kernels/surface_planes.hpp"

namespace carousel::viewer {
using ring::element;
namespace {

using ring::element;
using ring::frame_format;
using ring::plane;

constexpr u64 most_pixels_a_side = 16384, most_channels = 4;

bool is_side(u64 n) { return n >= 2 && n <= most_pixels_a_side; }
bool is_channels(u64 n) { return n >= 1 && n <= most_channels; }

std::vector<u64> strides_of(const plane& p) {
    if (!p.strides.empty()) return p.strides;
    std::vector<u64> out(p.shape.size(), ring::element_bytes(p.type));
    for (std::size_t d = out.size(); d-- > 1;) out[d - 1] = out[d] * p.shape[d];
    return out;
}

picture_kind kind_of(const plane_picture& p) {
    if (p.type != element::u8_ || p.channels < 3) return picture_kind::values;
    const bool dense =
        p.channels == 4 && p.channel_bytes == 1 && p.pixel_bytes == 4 && p.row_bytes == u64{p.width} * 4;
    return dense ? picture_kind::rgba : picture_kind::colours;
}

std::optional<plane_picture> as_picture(const plane& p, std::size_t index) {
    u32 first = 0;  // dimension
    while (p.shape.size() - first > 3 && p.shape[first] == 1) ++first;
    const std::size_t rank = p.shape.size() - first;
    if (rank < 2 || rank > 3) return std::nullopt;
    const bool channels_last = rank == 3 && is_channels(p.shape[first + 2]);
    if (rank == 3 && !channels_last && !is_channels(p.shape[first])) return std::nullopt;
    const u32 rows = rank == 3 && !channels_last ? first + 1 : first;
    if (!is_side(p.shape[rows]) || !is_side(p.shape[rows + 1])) return std::nullopt;
    const std::vector<u64> strides = strides_of(p);
    plane_picture out;
    out.name = p.name;
    out.type = p.type;
    out.height = static_cast<u32>(p.shape[rows]);
    out.width = static_cast<u32>(p.shape[rows + 1]);
    out.row_dimension = rows;
    out.row_bytes = strides[rows];
    out.pixel_bytes = strides[rows + 1];
    if (rank == 3) {
        const u32 d = channels_last ? first + 2 : first;
        out.channels = static_cast<u32>(p.shape[d]);
        out.channel_bytes = strides[d];
    }
    out.offset = p.offset;
    out.bytes = p.bytes();
    out.index = index;
    out.kind = kind_of(out);
    return out;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

plane_meaning meaning_of(const plane_picture& p, const frame_format& f) {
    const bool vector = p.channels >= 3 && is_float(p.type);
    if (is_one_of(p.name, {"normal", "normals"}) && (vector || (p.channels == 1 && p.type == element::u32_)))
        return plane_meaning::normals;
    if (p.name == "emission" && p.channels == 1 && p.type == element::u32_) return plane_meaning::light;
    if (vector && (f.type.find("linear") != std::string::npos || is_one_of(p.name, {"radiance", "emission"})))
        return plane_meaning::light;
    if (p.channels == 1 && !is_float(p.type) && p.type != element::bool_ &&
        is_one_of(p.name, {"id", "ids", "instance", "instances", "triangle", "triangles", "label", "labels"}))
        return plane_meaning::labels;
    return plane_meaning::values;
}

/// Adds what the frame format implies about the values.
void add_meaning(plane_picture& p, const frame_format& f) {
    const bool surface = f.type == kernels::surface_format;
    if (surface && p.name == "material" && p.channels == 4) {
        p.kind = picture_kind::values;
        p.channel_names = {"roughness", "metallic", "clearcoat", "emission"};
    }
    const auto image = ring::image_in(f);
    if (image && image->pixels == ring::pixel_format::rgba16) p.kind = picture_kind::colours;
    if (p.kind != picture_kind::values) return;
    p.meaning = meaning_of(p, f);
    p.zero_is_nothing = p.name == "depth" && (surface || f.type == kernels::shadow_format);
    if (p.channels == 1 || !p.channel_names.empty()) return;
    static constexpr const char* names[3][4] = {
        {"0", "1", "2", "3"}, {"red", "green", "blue", "alpha"}, {"x", "y", "z", "w"}};
    const int row = p.meaning == plane_meaning::light ? 1 : p.meaning == plane_meaning::normals ? 2 : 0;
    p.channel_names.assign(names[row], names[row] + p.channels);
}

void take_colours(plane_picture& p, const frame_format& f) {
    p.kind = picture_kind::nv12;
    p.colours = ring::colours_of(f, p.height);
}

/// NV12 in one plane: the rows of luma are followed by half as many rows of chroma.
std::optional<plane_picture> as_one_nv12(const frame_format& f, const plane& p, std::size_t index) {
    std::optional<plane_picture> out = as_picture(p, index);
    if (!out || p.type != element::u8_ || out->channels != 1 || out->pixel_bytes != 1 ||
        out->height % 3 != 0 || out->width % 2 != 0)
        return std::nullopt;
    out->height = out->height / 3 * 2;
    out->chroma_at = out->row_bytes * out->height;
    out->chroma_row = out->row_bytes;
    take_colours(*out, f);
    return out;
}

std::optional<plane_picture> as_two_nv12(const frame_format& f, const plane& y, std::size_t index,
                                         const plane& uv) {
    std::optional<plane_picture> out = as_picture(y, index);
    if (!out || y.type != element::u8_ || uv.type != element::u8_ || out->channels != 1 ||
        out->pixel_bytes != 1 || out->height % 2 != 0 || out->width % 2 != 0 || uv.offset < y.offset)
        return std::nullopt;
    const std::vector<u64> strides = strides_of(uv), half{out->height / 2, out->width / 2, 2},
                           flat{out->height / 2, out->width};
    const bool pairs = uv.shape == half && strides[1] == 2 && strides[2] == 1;
    if (!pairs && !(uv.shape == flat && strides[1] == 1)) return std::nullopt;
    out->name = y.name + " + " + uv.name;
    out->bytes = uv.offset + uv.bytes() - y.offset;
    out->chroma_at = uv.offset - y.offset;
    out->chroma_row = strides[0];
    take_colours(*out, f);
    return out;
}

std::optional<plane_picture> nv12_of(const frame_format& f) {
    const auto index_of = [&f](const plane* p) { return static_cast<std::size_t>(p - f.planes.data()); };
    if (const plane* p = f.find("nv12")) return as_one_nv12(f, *p, index_of(p));
    if (const plane* y = f.find("y"), *uv = f.find("uv"); y != nullptr && uv != nullptr)
        return as_two_nv12(f, *y, index_of(y), *uv);
    if (f.type.find("nv12") == std::string::npos || f.planes.empty()) return std::nullopt;
    if (f.planes.size() > 1)
        if (const auto two = as_two_nv12(f, f.planes[0], 0, f.planes[1])) return two;
    return as_one_nv12(f, f.planes[0], 0);
}

}  // namespace

bool is_float(element type) noexcept {
    return type == element::f8_e4m3_ || type == element::f8_e5m2_ || type == element::f16_ ||
           type == element::bf16_ || type == element::f32_ || type == element::f64_;
}

std::string value_text(element type, const std::byte* at) {
    switch (type) {
        case element::bool_:
            return *at != std::byte{0} ? "true" : "false";
        case element::u64_:  // converted separately, because an f64 cannot represent all digits of this type
            return fmt::format("{}", bits_of<u64>(at));
        case element::i64_:
            return fmt::format("{}", bits_of<i64>(at));
        case element::f64_:
            return fmt::format("{}", bits_of<f64>(at));
        default:
            break;
    }
    f64 value = 0;
    with_reader(type, [&](auto read) { value = read(at); });
    return is_float(type) ? fmt::format("{}", static_cast<f32>(value)) : fmt::format("{:.0f}", value);
}

picture_part plane_picture::used_of(const frame_format& f, const shm::used_extents& used) const {
    if (!ring::is_used_in_part(used, index)) return {};
    const plane& p = f.planes[index];
    const u64 rows = ring::used_extent(p, index, row_dimension, used);
    const bool one =
        kind == picture_kind::nv12 && chroma_row == row_bytes && p.shape[row_dimension] != height;
    return {static_cast<u32>(ring::used_extent(p, index, row_dimension + 1, used)),
            one ? height : static_cast<u32>(rows)};
}

std::vector<plane_picture> pictures_of(const frame_format& format) {
    std::vector<plane_picture> out;
    if (std::optional<plane_picture> nv12 = nv12_of(format)) out.push_back(std::move(*nv12));
    for (std::size_t k = 0; k < format.planes.size(); ++k) {
        std::optional<plane_picture> p = as_picture(format.planes[k], k);
        if (p) add_meaning(*p, format);
        if (p && (out.empty() || out.front().name != p->name)) out.push_back(std::move(*p));
    }
    return out;
}

std::optional<plane_picture> picture_of(const frame_format& format, std::string_view name) {
    const std::vector<plane_picture> all = pictures_of(format);
    const auto found = std::find_if(all.begin(), all.end(), [name](const plane_picture& p) {
        return name.empty() ? p.name == "color" && p.is_rgba() : p.name == name;
    });
    if (found != all.end()) return *found;
    return name.empty() && !all.empty() ? std::optional(all.front()) : std::nullopt;
}

}  // namespace carousel::viewer
