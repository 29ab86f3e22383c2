#pragma once
// The supervisor's own terminal or pipe: log lines, the progress line, messages. Never blocks and never
// raises SIGPIPE. Output that a slow reader does not accept is buffered up to a limit; beyond it the oldest
// output is dropped and counted. If the reader is gone, output is discarded and the run continues. If the
// output is systemd's journal, lines are entries with fields (journal.hpp), and the progress line is omitted.
// One thread.

#include <string>
#include <string_view>

#include "core/log.hpp"
#include "core/types.hpp"
#include "os/journal.hpp"

namespace carousel::supervisor {

/// Determines the levels of consecutive lines of one source: an indented line continues the previous line and
/// has its level.
class line_levels {
public:
    [[nodiscard]] log::level next(std::string_view line) noexcept {
        if (!line.starts_with(' ')) last_ = log::level_of(line);
        return last_;
    }

private:
    log::level last_ = log::level::info;
};

/// Returns true if `fd` is a terminal that understands escape sequences: TERM is set and not "dumb".
[[nodiscard]] bool understands_escapes(int fd) noexcept;

class console {
public:
    /// `fd` remains owned by the caller. `color`: ANSI colours (false with NO_COLOR or --no-color).
    /// `terminal`: see understands_escapes().
    console(int fd, bool color, bool terminal) noexcept : fd_(fd), color_(color), terminal_(terminal) {}

    /// From now on lines are entries of the journal, and each entry has the field `pipeline`.
    void use(journal to, std::string pipeline);
    /// Lines below this level are not printed. The progress line is of level `info`. Default: all.
    void set_threshold(log::level lowest) noexcept { threshold_ = lowest; }
    /// Prints one whole line, passed without its newline.
    void line(std::string_view text);
    /// Prints a line of a stage; `printed` is the line with the stage's label and colour.
    void line_of(journal_entry line, std::string_view printed);
    /// Sets the progress line at the bottom of a terminal, which is redrawn in place. If the output is not a
    /// terminal, prints the text as line() does.
    void status(std::string_view text);
    /// Removes the status line.
    void clear_status();
    /// Writes as much as the reader accepts now. Called at each tick.
    void flush() noexcept;
    [[nodiscard]] bool color() const noexcept { return color_; }
    [[nodiscard]] bool terminal() const noexcept { return terminal_; }
    [[nodiscard]] bool reader_gone() const noexcept { return gone_; }
    [[nodiscard]] u64 dropped() const noexcept { return dropped_; }

private:
    void append(std::string_view text);

    int fd_;
    bool color_, terminal_, gone_ = false;
    std::string pending_, status_;
    u64 dropped_ = 0;
    journal journal_;  ///< if the journal is not open, lines are written to fd_
    std::string pipeline_;
    log::level threshold_ = log::level::debug;
    line_levels levels_;
};

/// Returns the ANSI sequence for the colour of the n-th stage's prefix.
[[nodiscard]] const char* color_of(u32 n) noexcept;
inline constexpr const char* color_off = "\x1b[0m";

// Functions that return the command by which the user can call `carousel`, for hints that the user can copy
// from the output.

/// Returns "carousel" if this program is the one that PATH finds, otherwise a path that works from the
/// working directory ("build/release/carousel", "./carousel", or the absolute path).
[[nodiscard]] std::string own_command();

/// Like own_command(), for a user in another working directory, which is given as an absolute path.
[[nodiscard]] std::string own_command_from(const std::string& working_folder);

/// Like own_command(), for any program and working directory (absolute paths) and any value of PATH.
[[nodiscard]] std::string command_for(const std::string& program, const std::string& working_folder,
                                      const std::string& path);

/// Returns the text as one shell word: unchanged, or in single quotes.
[[nodiscard]] std::string shell_word(const std::string& text);

}  // namespace carousel::supervisor
