#pragma once
// Writes one line per message to stderr, in one write(2), so that lines of several threads and processes are
// not interleaved. The supervisor, which owns the pipe, adds the prefix "stage | " to a stage's lines. A
// closed pipe must not end a stage, so write errors (EPIPE, EAGAIN) are ignored, and stage_main ignores
// SIGPIPE.

#include <fmt/format.h>

#include <string_view>

namespace carousel::log {

enum class level { debug, info, warning, error };

/// "debug", "info", "warning", "error".
[[nodiscard]] const char* name_of(level at) noexcept;
/// The prefix of a line of this level: "debug: ", "warning: ", "error: "; empty for `info`.
[[nodiscard]] std::string_view prefix_of(level at) noexcept;
/// The level of a line, by its prefix. A line without a prefix, for example of another program, is `info`.
[[nodiscard]] level level_of(std::string_view line) noexcept;
/// The last line of a program's output, without the prefix that marks an error.
[[nodiscard]] std::string_view last_line_of(std::string_view output) noexcept;

/// Messages below this level are dropped. CAROUSEL_LOG=debug|info|warning|error sets this level at the start;
/// the default is info.
[[nodiscard]] level threshold() noexcept;
/// Writes one line at level `at`, regardless of the threshold. Any thread.
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
