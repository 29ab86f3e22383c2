#pragma once
// The description of a slot's payload: named planes with element type, shape and strides, and named constants
// that are the same for all frames of the link (vertex counts and the like). A stage describes its output
// before anything starts; a consumer checks the description and rejects a format that it cannot read, with
// both descriptions in the message. Layout of a slot: status word at offset 0, then the planes at their
// offsets, each 256-byte aligned.

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace carousel::ring {

/// 1 TiB: far larger than the memory of any device, and far below an overflow.
inline constexpr u64 largest_slot_bytes = u64{1} << 40U;

/// bf16_: the upper half of an f32. f8_e4m3_ and f8_e5m2_: the two 8-bit floats of machine learning (OCP);
/// f8_e4m3_ has no infinity. bool_: a byte, 0 or 1.
enum class element : u8 {
    u8_,
    u16_,
    u32_,
    u64_,
    i8_,
    i16_,
    i32_,
    i64_,
    f8_e4m3_,
    f8_e5m2_,
    f16_,
    bf16_,
    f32_,
    f64_,
    bool_
};
[[nodiscard]] u64 element_bytes(element type) noexcept;
[[nodiscard]] const char* name_of(element type) noexcept;

inline constexpr u64 plane_alignment = 256;
inline constexpr u32 max_rank = 4;

/// One array of a payload. shape[0] is the slowest dimension.
struct plane {
    std::string name;
    element type = element::u8_;
    std::vector<u64> shape;         ///< up to max_rank entries, each > 0
    std::vector<u64> strides = {};  ///< bytes; empty = dense row-major
    u64 offset = 0;                 ///< bytes from the slot's start; set by frame_format::lay_out
    /// Bytes from the first element to the end of the last. Throws config_error if that exceeds 1 TiB.
    [[nodiscard]] u64 bytes() const;
    bool operator==(const plane&) const = default;
};

struct frame_format {
    std::string type;  ///< the payload's type, e.g. "carousel.image.rgba8"
    std::vector<plane> planes;
    std::map<std::string, double> constants;  ///< same for every frame
    bool operator==(const frame_format&) const = default;

    /// Sets the planes' offsets; returns the slot's size in bytes (a multiple of plane_alignment). Throws
    /// config_error if the name of a plane is empty or occurs twice, if a shape is empty, if a rank exceeds
    /// max_rank, if an extent is 0, if the number of strides differs from the rank, or if the size exceeds 1
    /// TiB.
    u64 lay_out();
    [[nodiscard]] const plane* find(std::string_view name) const noexcept;
    [[nodiscard]] std::string describe() const;  ///< "carousel.image.rgba8 {color: u8[720][1280][4]}"
    [[nodiscard]] std::string to_json() const;
    [[nodiscard]] static frame_format from_json(std::string_view text);  ///< throws config_error
};

/// Throws config_error, which contains both descriptions, unless `offered` has the same type as `expected`
/// and contains every plane of `expected` with the same element type, shape and strides (an expected extent
/// of 0 matches any extent).
void require_format(const frame_format& offered, const frame_format& expected, std::string_view consumer,
                    std::string_view producer);

// The text form of a plane: "u8[720,1280,4]", an element type and its extents, the slowest first. Pipeline
// files use this form to declare what a port writes; programs use it to declare what they expect.

/// Throws config_error, which quotes `text` and states what is expected.
[[nodiscard]] plane plane_from_text(const std::string& name, std::string_view text);

}  // namespace carousel::ring
