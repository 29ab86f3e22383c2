#pragma once
// The supervisor's own terminal or pipe: log lines, the progress line, messages. It never blocks and never
// raises SIGPIPE: what a slow reader can't take is kept up to a bound, then the oldest is dropped and
// counted; a reader that is gone is forgotten about, and the run goes on. One thread.

#include <string>
#include <string_view>

#include "core/types.hpp"

namespace carousel::supervisor {

/// `fd` is a terminal that understands escape sequences: TERM is set, and is not "dumb".
[[nodiscard]] bool understands_escapes(int fd) noexcept;

class console {
public:
    /// `fd` stays the caller's. `color`: ANSI colours (with NO_COLOR or --no-color: false). `terminal`: see
    /// understands_escapes().
    console(int fd, bool color, bool terminal) noexcept : fd_(fd), color_(color), terminal_(terminal) {}

    /// One whole line without its newline.
    void line(std::string_view text);
    /// The line at the bottom of a terminal, redrawn in place. Off a terminal the same as line().
    void status(std::string_view text);
    /// Takes the status line away.
    void clear_status();
    /// Writes what the reader can take now. Called at each tick.
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
};

/// The colour of the n-th stage's prefix, as an ANSI sequence.
[[nodiscard]] const char* color_of(u32 n) noexcept;
inline constexpr const char* color_off = "\x1b[0m";

}  // namespace carousel::supervisor
