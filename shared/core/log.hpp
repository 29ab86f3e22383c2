#pragma once
// One line to stderr per message, in one write(2), so that lines of several threads and processes never mix.
// A stage's lines get their "stage | " prefix from the supervisor, which owns the pipe. A reader that is gone
// must not take a stage with it: write errors (EPIPE, EAGAIN) are dropped; stage_main ignores SIGPIPE.

#include <fmt/format.h>

#include <string_view>

namespace carousel::log {

enum class level { debug, info, warning, error };

/// Messages below this level are dropped. CAROUSEL_LOG=debug|info|warning|error sets it at start [info].
[[nodiscard]] level threshold() noexcept;
void write_line(level at, std::string_view text) noexcept;

template <typename... Args>
void debug(fmt::format_string<Args...> f, Args&&... args) {
    if (threshold() <= level::debug) write_line(level::debug, fmt::format(f, std::forward<Args>(args)...));
}
template <typename... Args>
void info(fmt::format_string<Args...> f, Args&&... args) {
    if (threshold() <= level::info) write_line(level::info, fmt::format(f, std::forward<Args>(args)...));
}
template <typename... Args>
void warning(fmt::format_string<Args...> f, Args&&... args) {
    if (threshold() <= level::warning)
        write_line(level::warning, fmt::format(f, std::forward<Args>(args)...));
}
template <typename... Args>
void error(fmt::format_string<Args...> f, Args&&... args) {
    write_line(level::error, fmt::format(f, std::forward<Args>(args)...));
}

}  // namespace carousel::log
