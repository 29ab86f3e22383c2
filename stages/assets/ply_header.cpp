#include "stages/assets/ply_header.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

namespace carousel::stages {
namespace {

constexpr std::string_view white_space = " \t\r\n";
constexpr std::size_t longest_header = 1 << 20;
constexpr u64 most_elements = u64{1} << 31U;

std::string_view take_word(std::string_view& line) {
    const auto first = line.find_first_not_of(white_space);
    if (first == std::string_view::npos) {
        line = {};
        return {};
    }
    const auto end = std::min(line.find_first_of(white_space, first), line.size());
    const std::string_view word = line.substr(first, end - first);
    line.remove_prefix(end);
    return word;
}

[[noreturn]] void refuse(const std::string& why) { throw std::runtime_error(why); }

ply_type type_named(std::string_view name) {
    struct row {
        std::string_view name, other;
        ply_type type;
    };
    static constexpr row rows[] = {{"char", "int8", ply_type::i8},      {"uchar", "uint8", ply_type::u8},
                                   {"short", "int16", ply_type::i16},   {"ushort", "uint16", ply_type::u16},
                                   {"int", "int32", ply_type::i32},     {"uint", "uint32", ply_type::u32},
                                   {"float", "float32", ply_type::f32}, {"double", "float64", ply_type::f64}};
    for (const row& r : rows)
        if (name == r.name || name == r.other) return r.type;
    refuse(fmt::format("\"{}\" is not a type of PLY", name.substr(0, 40)));
}

ply_property property_of(std::string_view line) {
    ply_property out;
    std::string_view type = take_word(line);
    if (type == "list") {
        out.is_list = true;
        out.count_type = type_named(take_word(line));
        if (out.count_type == ply_type::f32 || out.count_type == ply_type::f64)
            refuse("the length of a list is not a whole number");
        type = take_word(line);
    }
    out.type = type_named(type);
    out.name = take_word(line);
    return out;
}

template <typename T>
f64 value_of(const char* bytes, bool swap) {
    char own[sizeof(T)];
    std::memcpy(own, bytes, sizeof own);
    if (swap) std::reverse(std::begin(own), std::end(own));
    T value;
    std::memcpy(&value, own, sizeof value);
    return static_cast<f64>(value);
}

}  // namespace

u32 size_of(ply_type type) noexcept {
    switch (type) {
        case ply_type::i8:
        case ply_type::u8:
            return 1;
        case ply_type::i16:
        case ply_type::u16:
            return 2;
        case ply_type::f64:
            return 8;
        default:
            return 4;
    }
}

ply_header parse_ply_header(std::string_view file) {
    ply_header out;
    bool has_format = false;
    std::string_view rest = file.substr(0, longest_header);
    for (u64 number = 1;; ++number) {
        const auto end = rest.find('\n');
        if (end == std::string_view::npos) refuse("its header has no end_header");
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(end + 1);
        const std::string_view keyword = take_word(line);
        if (number == 1) {
            if (keyword != "ply") refuse("it does not begin with the line \"ply\"");
        } else if (keyword == "format") {
            const std::string_view name = take_word(line), version = take_word(line);
            if (name == "ascii")
                out.encoding = ply_encoding::ascii;
            else if (name == "binary_little_endian")
                out.encoding = ply_encoding::little_endian;
            else if (name == "binary_big_endian")
                out.encoding = ply_encoding::big_endian;
            else
                refuse(fmt::format("line {}: \"{}\" is not a format of PLY", number, name.substr(0, 40)));
            if (version != "1.0")
                refuse(fmt::format("its version is {}; only 1.0 can be read", version.substr(0, 20)));
            has_format = true;
        } else if (keyword == "element") {
            ply_element element;
            element.name = take_word(line);
            // A second one would make the arrays of the vertices differ in length.
            if ((element.name == "vertex" || element.name == "face") &&
                std::any_of(out.elements.begin(), out.elements.end(),
                            [&](const ply_element& e) { return e.name == element.name; }))
                refuse(fmt::format("line {}: a second element {}; merge it with the first one", number,
                                   element.name));
            const std::string_view count = take_word(line);
            const auto [stop, failed] =
                std::from_chars(count.data(), count.data() + count.size(), element.count);
            if (failed != std::errc() || stop != count.data() + count.size() || element.count > most_elements)
                refuse(
                    fmt::format("line {}: \"{}\" is not a number of elements", number, count.substr(0, 40)));
            out.elements.push_back(std::move(element));
        } else if (keyword == "property") {
            if (out.elements.empty()) refuse(fmt::format("line {}: a property without an element", number));
            out.elements.back().properties.push_back(property_of(line));
        } else if (keyword == "end_header") {
            break;
        } else if (keyword != "comment" && keyword != "obj_info" && !keyword.empty()) {
            refuse(fmt::format("line {}: unknown keyword \"{}\"", number, keyword.substr(0, 40)));
        }
    }
    if (!has_format)
        refuse("its header names no format: add the line \"format ascii 1.0\", or export it again");
    out.bytes = static_cast<std::size_t>(rest.data() - file.data());
    return out;
}

f64 ply_values::next_word() {
    const std::string_view word = take_word(rest_);
    if (word.empty()) refuse(ply_ends_early);
    // from_chars knows no plus sign.
    const bool has_plus = word.size() > 1 && word[0] == '+' && word[1] != '-';
    const char* const first = word.data() + (has_plus ? 1 : 0);
    f64 value = 0;
    const auto [stop, failed] = std::from_chars(first, word.data() + word.size(), value);
    const bool is_whole = stop == word.data() + word.size();
    if (failed == std::errc::result_out_of_range && is_whole) {
        // from_chars reports too large and too small numbers alike; too small ones are 0.
        if (std::isfinite(std::strtod(std::string(first, stop).c_str(), nullptr))) return 0;
        refuse(fmt::format("\"{}\" is out of the range of a float", word.substr(0, 40)));
    }
    if (failed != std::errc() || !is_whole) refuse(fmt::format("\"{}\" is not a number", word.substr(0, 40)));
    return value;
}

f64 ply_values::next(ply_type type) {
    if (encoding_ == ply_encoding::ascii) return next_word();
    const u32 size = size_of(type);
    if (rest_.size() < size) refuse(ply_ends_early);
    const char* const at = rest_.data();
    rest_.remove_prefix(size);
    const bool swap = encoding_ == ply_encoding::big_endian;
    switch (type) {
        case ply_type::i8:
            return value_of<i8>(at, swap);
        case ply_type::u8:
            return value_of<u8>(at, swap);
        case ply_type::i16:
            return value_of<i16>(at, swap);
        case ply_type::u16:
            return value_of<u16>(at, swap);
        case ply_type::i32:
            return value_of<i32>(at, swap);
        case ply_type::u32:
            return value_of<u32>(at, swap);
        case ply_type::f32:
            return value_of<f32>(at, swap);
        default:
            return value_of<f64>(at, swap);
    }
}

}  // namespace carousel::stages
