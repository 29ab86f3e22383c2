#pragma once
// The header of a PLY file, and its values. Internal to the PLY reader.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace carousel::stages {

enum class ply_type : u8 { i8, u8, i16, u16, i32, u32, f32, f64 };

[[nodiscard]] u32 size_of(ply_type type) noexcept;

struct ply_property {
    std::string name;
    ply_type type = ply_type::f32;  ///< of the value; of a list: of its entries
    bool is_list = false;
    ply_type count_type = ply_type::u8;  ///< of a list's length
};

struct ply_element {
    std::string name;
    u64 count = 0;
    std::vector<ply_property> properties;
};

enum class ply_encoding : u8 { ascii, little_endian, big_endian };

struct ply_header {
    ply_encoding encoding = ply_encoding::ascii;
    std::vector<ply_element> elements;
    std::size_t bytes = 0;  ///< length of the header
};

/// The reason for refusing a file that is shorter than its header promises.
inline constexpr const char* ply_ends_early =
    "it ends early: its header promises more elements; copy or export it again";

/// Throws std::runtime_error with the reason, without the file's name.
[[nodiscard]] ply_header parse_ply_header(std::string_view file);

/// Reads values one after another, in the file's encoding.
class ply_values {
public:
    ply_values(std::string_view body, ply_encoding encoding) : rest_(body), encoding_(encoding) {}
    /// Throws std::runtime_error at the end of the file and for text that is not a number.
    [[nodiscard]] f64 next(ply_type type);
    [[nodiscard]] std::size_t bytes_left() const noexcept { return rest_.size(); }

private:
    [[nodiscard]] f64 next_word();

    std::string_view rest_;
    ply_encoding encoding_;
};

}  // namespace carousel::stages
