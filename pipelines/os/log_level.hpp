#pragma once
// The level of a log line, by the word that core/log.hpp puts before it. A line of another program is `info`
// unless it begins in the same way.

#include <string_view>

#include "core/log.hpp"

namespace carousel::supervisor {

[[nodiscard]] inline log::level level_of(std::string_view line) noexcept {
    if (line.starts_with("error: ")) return log::level::error;
    return line.starts_with("warning: ") ? log::level::warning : log::level::info;
}

/// Levels of the lines of one source: an indented line continues the one before it.
class line_levels {
public:
    [[nodiscard]] log::level next(std::string_view line) noexcept {
        if (!line.starts_with(' ')) last_ = level_of(line);
        return last_;
    }

private:
    log::level last_ = log::level::info;
};

/// "debug", "info", "warning", "error".
[[nodiscard]] inline const char* name_of(log::level at) noexcept {
    constexpr const char* names[] = {"debug", "info", "warning", "error"};
    return names[static_cast<int>(at)];
}

}  // namespace carousel::supervisor
