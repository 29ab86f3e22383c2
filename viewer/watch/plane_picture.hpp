#pragma once
// Converts one element of a plane to a number, for every element type.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frame/frame_format.hpp"
#include "frame/image_format.hpp"
#include "shm/frame_header.hpp"

namespace carousel::viewer {

[[nodiscard]] inline f64 half_value(u16 bits) noexcept {
    const int exponent = (bits >> 10U) & 31, mantissa = bits & 1023;
    const f64 sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
    if (exponent == 31) return mantissa != 0 ? std::numeric_limits<f64>::quiet_NaN() : sign * HUGE_VAL;
    return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25));
}

/// FP8 E4M3 has 4 bits of exponent and 3 bits of mantissa. It has no infinity, and one NaN of each sign.
[[nodiscard]] inline f64 e4m3_value(u8 bits) noexcept {
    const int exponent = (bits >> 3U) & 15, mantissa = bits & 7;
    const f64 sign = (bits & 0x80U) != 0 ? -1.0 : 1.0;
    if (exponent == 15 && mantissa == 7) return std::numeric_limits<f64>::quiet_NaN();
    return sign * (exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(mantissa + 8, exponent - 10));
}

template <typename T>
[[nodiscard]] T bits_of(const std::byte* at) noexcept {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

/// Calls `use` with a function that reads an element of this type: (const std::byte*) -> f64. If `use`
/// processes a whole plane, the type is dispatched only once, and not for each element.
template <typename Use>
void with_reader(ring::element type, Use&& use) {
    using ring::element;
    const auto plain = [&use](auto zero) {
        using T = decltype(zero);
        use([](const std::byte* at) noexcept { return static_cast<f64>(bits_of<T>(at)); });
    };
    switch (type) {
        case element::u8_:
            return plain(u8{});
        case element::u16_:
            return plain(u16{});
        case element::u32_:
            return plain(u32{});
        case element::u64_:
            return plain(u64{});
        case element::i8_:
            return plain(i8{});
        case element::i16_:
            return plain(i16{});
        case element::i32_:
            return plain(i32{});
        case element::i64_:
            return plain(i64{});
        case element::f32_:
            return plain(f32{});
        case element::f64_:
            return plain(f64{});
        case element::bool_:
            return use([](const std::byte* at) noexcept { return *at != std::byte{0} ? 1.0 : 0.0; });
        case element::f8_e4m3_:
            return use([](const std::byte* at) noexcept { return e4m3_value(static_cast<u8>(*at)); });
        case element::f8_e5m2_:  // its bits are the upper half of an f16
            return use([](const std::byte* at) noexcept {
                return half_value(static_cast<u16>(static_cast<u32>(*at) << 8U));
            });
        case element::f16_:
            return use([](const std::byte* at) noexcept { return half_value(bits_of<u16>(at)); });
        case element::bf16_:
            return use([](const std::byte* at) noexcept {
                return static_cast<f64>(std::bit_cast<f32>(u32{bits_of<u16>(at)} << 16U));
            });
    }
}

[[nodiscard]] bool is_float(ring::element type) noexcept;
/// Returns the exact value as text. An integer has all its digits; a float has as few digits as are needed to
/// distinguish it from its neighbours.
[[nodiscard]] std::string value_text(ring::element type, const std::byte* at);

// Determines which planes of a ring are pictures, and where their pixels are.
// A plane with rows and columns is a picture: [rows, columns], [rows, columns, 1 to 4] or [1 to 4, rows,
// columns], dense or strided, of any element type. Planes of 8 bit with 3 or 4 channels contain colours, and
// so does the plane of "carousel.image.rgba16"; all others contain values, which are mapped to colours
// (picture_colours.hpp). NV12 (luma per pixel, two chroma values per 2 x 2 pixels) is recognised by name: one
// plane "nv12" u8[rows * 3 / 2, columns], or two planes "y" u8[rows, columns] and "uv" u8[rows / 2, columns /
// 2, 2] or u8[rows / 2, columns]. Planes with other names are NV12 if the type of the frame format contains
// "nv12". Constants of the format may describe the colours (frame/image_format.hpp).

/// What the values of a plane mean. It determines the colours that are used unless the user chooses others.
enum class plane_meaning : u8 {
    values,  ///< numbers of which nothing else is known
    light,   ///< linear light of a scene, without an upper limit: 3 or 4 floats, in a frame format whose type
             ///< contains "linear", or in a plane "radiance" or "emission"; or one u32 in a plane "emission"
             ///< (red, green and blue of 9 bits with a common exponent of 5 bits)
    normals,  ///< unit vectors, in a plane "normal": 3 or 4 floats, or one u32 (octahedral, 16 bits for each
              ///< coordinate: kernels/body/surface.hpp)
    labels,  ///< integers of which only the equality means something, in a plane "id", "instance", "triangle"
             ///< or "label"
};

enum class picture_kind : u8 {
    rgba,     ///< the bytes are already RGBA8
    colours,  ///< colours of 8 or 16 bits, which are shown unchanged, with 8 bits
    values,
    nv12,
};

/// The part of a picture that its frame uses, in pixels.
struct picture_part {
    u32 width = ~0U, height = ~0U;
    bool operator==(const picture_part&) const = default;
};

struct plane_picture {
    std::string name;  ///< the plane's name; "y + uv" for two planes
    picture_kind kind = picture_kind::values;
    plane_meaning meaning = plane_meaning::values;
    bool zero_is_nothing = false;  ///< 0 means that the pixel shows no surface; such pixels are black
    /// the names of the channels that can be shown alone; empty: there are none
    std::vector<std::string> channel_names;
    ring::element type = ring::element::u8_;
    u32 width = 0, height = 0, channels = 1;
    u64 offset = 0, bytes = 0;  ///< the range of the slot's bytes that contains the whole picture
    u64 row_bytes = 0, pixel_bytes = 0, channel_bytes = 0;
    std::size_t index = 0;  ///< index of the plane in the format; if there are two planes, index of the first
    u32 row_dimension = 0;  ///< the dimension of the rows; the next one has the columns
    u64 chroma_at = 0, chroma_row = 0;  ///< nv12: offset of the chroma from `offset`; bytes per row of chroma
    ring::yuv_colours colours;          ///< nv12

    [[nodiscard]] bool is_rgba() const noexcept { return kind == picture_kind::rgba; }
    [[nodiscard]] const std::byte* at(const std::byte* begin, u32 x, u32 y, u32 channel = 0) const noexcept {
        return begin + y * row_bytes + x * pixel_bytes + channel * channel_bytes;
    }
    /// Returns the used part, which it takes from the frame header's `used`.
    [[nodiscard]] picture_part used_of(const ring::frame_format& f, const shm::used_extents& used) const;
};

/// Returns all pictures of a ring.
[[nodiscard]] std::vector<plane_picture> pictures_of(const ring::frame_format& format);
/// Returns the picture with that name, or nullopt if there is none. If the name is "", returns the picture
/// "color" if it is RGBA8, otherwise the first picture.
[[nodiscard]] std::optional<plane_picture> picture_of(const ring::frame_format& format,
                                                      std::string_view name = "");

}  // namespace carousel::viewer
