#include "stages/display/picture_name.hpp"

#include <fmt/format.h>

#include <charconv>

#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace {

constexpr std::size_t most_digits = 20;

/// The conversion at pattern[at] == '%': its length and its number of digits. Length 0: the conversion is not
/// supported.
struct conversion {
    std::size_t length = 0;
    std::size_t digits = 1;
};

conversion parse_conversion(std::string_view pattern, std::size_t at) {
    std::size_t end = at + 1;
    std::size_t digits = 0;
    const bool padded = end < pattern.size() && pattern[end] == '0';
    while (padded && end < pattern.size() && pattern[end] >= '0' && pattern[end] <= '9' &&
           digits <= most_digits) {
        digits = digits * 10 + static_cast<std::size_t>(pattern[end++] - '0');
    }
    if (end >= pattern.size() || pattern[end] != 'd' || digits > most_digits || (padded && digits == 0)) {
        return {};
    }
    return {end + 1 - at, padded ? digits : 1};
}

}  // namespace

picture_name::picture_name(std::string key, const std::string& pattern) {
    const auto refuse = [&](std::string_view why) {
        throw settings_error(
            key, fmt::format("{} = \"{}\": {}; expected a name like \"frame_%05d.png\"", key, pattern, why));
    };
    std::string* part = &before_;
    for (std::size_t at = 0; at < pattern.size(); ++at) {
        if (pattern[at] != '%') {
            *part += pattern[at];
        } else if (pattern.compare(at, 2, "%%") == 0) {
            *part += '%';
            ++at;
        } else {
            const conversion found = parse_conversion(pattern, at);
            if (found.length == 0) {
                refuse(
                    fmt::format("\"{}\" is not a number's placeholder (only %d and %0Nd with N from 1 to 20 "
                                "are; %% is a percent sign)",
                                pattern.substr(at, 4)));
            }
            if (part == &after_) {
                refuse("it has more than one placeholder for the frame's number");
            }
            digits_ = found.digits;
            part = &after_;
            at += found.length - 1;
        }
    }
    if (part == &before_) {
        refuse(
            "it has no placeholder for the frame's number, so that every picture would replace the previous "
            "one");
    }
    if (after_.find('/') != std::string::npos) {
        refuse("the frame's number belongs in the file's name, not in the folder's");
    }
    const std::optional<picture_format> format = picture_format_of(after_);
    if (!format) {
        refuse(fmt::format("pictures are files that end in {}", picture_endings()));
    }
    if (const std::string_view why = why_not_written(*format); !why.empty()) refuse(why);
    format_ = *format;
    if (pattern.find('\0') != std::string::npos) {
        refuse("it has a zero byte in it");
    }
}

std::filesystem::path picture_name::of(u64 frame_number, const std::filesystem::path& folder) const {
    return folder / fmt::format("{}{:0{}}{}", before_, frame_number, digits_, after_);
}

std::optional<u64> picture_name::number_of(const std::string& file_name) const {
    const std::string before = before_.substr(before_.rfind('/') + 1);
    if (file_name.size() <= before.size() + after_.size() || !file_name.starts_with(before))
        return std::nullopt;
    const char* first = file_name.data() + before.size();
    const char* last = file_name.data() + file_name.size() - after_.size();
    u64 frame_number = 0;
    const auto [end, failed] = std::from_chars(first, last, frame_number);
    if (failed != std::errc() || end != last || of(frame_number, {}).filename() != file_name)
        return std::nullopt;
    return frame_number;
}

std::filesystem::path picture_name::parent(const std::filesystem::path& folder) const {
    return of(0, folder).parent_path();
}

}  // namespace carousel::stages
