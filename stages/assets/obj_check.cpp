// The library that parses OBJ files is lenient: it reads "v 1 abc 2" as a point and drops faces that it
// cannot resolve. This pass checks the same lines first and refuses those that the library would misread.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "stages/assets/scene_files.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace {

constexpr std::string_view blanks = " \t";

/// Removes the next word from `line` and returns it; "" at the end.
std::string_view next_word(std::string_view& line) {
    const auto first = line.find_first_not_of(blanks);
    if (first == std::string_view::npos) {
        line = {};
        return {};
    }
    const auto end = std::min(line.find_first_of(blanks, first), line.size());
    const std::string_view word = line.substr(first, end - first);
    line.remove_prefix(end);
    return word;
}

template <typename Number>
bool parse_whole(std::string_view word, Number& value) {
    if (word.starts_with('+')) {
        word.remove_prefix(1);
    }
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), value);
    return failed == std::errc() && end == word.data() + word.size();
}

/// True if the exponent has at most two digits, not counting leading zeros. The library multiplies by the
/// power of ten, so it reads 0e9999 as NaN.
bool exponent_fits(std::string_view number) {
    const auto e = number.find_first_of("eE");
    if (e == std::string_view::npos) return true;
    const auto digits = number.find_first_not_of("+-0", e + 1);
    return digits == std::string_view::npos || number.size() - digits <= 2;
}

class obj_checker {
public:
    explicit obj_checker(const std::string& name) : name_(name) {}

    void line(std::string_view text) {
        ++line_;
        if (text.find('\0') != std::string_view::npos) {
            refuse("a zero byte: this is not a text file; check that it is a Wavefront OBJ file");
        }
        std::string_view rest = text;
        const std::string_view keyword = next_word(rest);
        if (keyword == "v") {
            numbers(rest, 3, "a point needs three coordinates");
            ++points_;
        } else if (keyword == "vn") {
            numbers(rest, 3, "a normal needs three numbers");
            ++normals_;
        } else if (keyword == "vt") {
            numbers(rest, 1, "a texture coordinate needs a number");
            ++textures_;
        } else if (keyword == "vw") {
            skin_weights(rest);
        } else if (keyword == "f") {
            face(rest);
        }
    }

    std::vector<u32> end() {
        if (faces_.empty()) {
            throw settings_error(
                "mesh",
                fmt::format(
                    "{}: it has no faces ({} points in {} lines): check that it is a Wavefront OBJ file",
                    name_, points_, line_));
        }
        // Faces may precede the points that they name, so the number of points is known only now.
        beyond(highest_point_, points_, "points");
        beyond(highest_texture_, textures_, "texture coordinates");
        beyond(highest_normal_, normals_, "normals");
        return std::move(faces_);
    }

private:
    struct highest {
        i64 index = 0;
        u64 line = 0;
    };

    [[noreturn]] void refuse(std::string_view what) const {
        throw settings_error("mesh", fmt::format("{}:{}: {}", name_, line_, what));
    }

    void beyond(const highest& h, i64 count, std::string_view what) const {
        if (h.index > count) {
            throw settings_error(
                "mesh", fmt::format("{}:{}: a face names number {} of the {}, but the file has {}", name_,
                                    h.line, h.index, what, count));
        }
    }

    void numbers(std::string_view rest, int needed, std::string_view otherwise) const {
        for (int i = 0; i < needed || i < 3; ++i) {
            const std::string_view word = next_word(rest);
            if (word.empty() || word.front() == '#') {
                if (i < needed) {
                    refuse(otherwise);
                }
                return;
            }
            f32 value = 0;
            if (!parse_whole(word, value)) {
                refuse(fmt::format("\"{}\" is not a number that fits a float", word));
            }
            if (!std::isfinite(value)) {
                refuse(fmt::format("\"{}\" is not a finite number", word));
            }
            if (!exponent_fits(word)) {
                refuse(fmt::format("the exponent of \"{}\" does not fit a float", word));
            }
        }
    }

    /// Skin weights are unused, but the library casts each joint's number to an int without a check.
    void skin_weights(std::string_view rest) const {
        constexpr f32 beyond_int = 2147483648.0F;
        for (auto word = next_word(rest); !word.empty() && word.front() != '#'; word = next_word(rest)) {
            f32 value = 0;
            if (!parse_whole(word, value) || !(std::abs(value) < beyond_int) || !exponent_fits(word))
                refuse(fmt::format("\"{}\" is not a joint or weight of a skin", word));
        }
    }

    void face(std::string_view rest) {
        u32 corners = 0;
        for (auto word = next_word(rest); !word.empty() && word.front() != '#'; word = next_word(rest)) {
            corner(word);
            ++corners;
        }
        if (corners < 3) {
            refuse(fmt::format("a face needs at least three corners and has {}", corners));
        }
        faces_.push_back(corners);
    }

    /// Reads one corner of a face: "point", "point/texture", "point//normal" or "point/texture/normal".
    void corner(std::string_view word) {
        const auto slash = word.find('/');
        index(word, word.substr(0, slash), points_, highest_point_, "points");
        if (slash == std::string_view::npos) {
            return;
        }
        const std::string_view rest = word.substr(slash + 1);
        const auto second = rest.find('/');
        if (second != 0) {
            index(word, rest.substr(0, second), textures_, highest_texture_, "texture coordinates");
        }
        if (second != std::string_view::npos) {
            index(word, rest.substr(second + 1), normals_, highest_normal_, "normals");
        }
    }

    void index(std::string_view corner, std::string_view text, i64 count, highest& h,
               std::string_view what) const {
        i64 value = 0;
        if (!parse_whole(text, value) || value == 0 || value > i64{1} << 31) {
            refuse(fmt::format("\"{}\" is not a corner of a face (numbers count from 1)", corner));
        }
        if (value < 0 && -value > count) {
            refuse(fmt::format("corner \"{}\" counts {} back among the {}, but only {} are defined so far",
                               corner, -value, what, count));
        }
        if (value > h.index) {
            h = {value, line_};
        }
    }

    const std::string& name_;
    u64 line_ = 0;
    i64 points_ = 0, normals_ = 0, textures_ = 0;
    std::vector<u32> faces_;  ///< number of corners of each face
    highest highest_point_, highest_texture_, highest_normal_;
};

}  // namespace

std::vector<u32> check_obj(const std::string& text, const std::string& name) {
    obj_checker checker(name);
    std::string_view rest = text;
    while (!rest.empty()) {
        // Like the library, accepts a line end of \n, \r\n or a single \r.
        const auto end = std::min(rest.find_first_of("\r\n"), rest.size());
        checker.line(rest.substr(0, end));
        rest.remove_prefix(std::min(end + (rest.substr(end).starts_with("\r\n") ? 2 : 1), rest.size()));
    }
    return checker.end();
}

}  // namespace carousel::stages
