#pragma once
// The terminal as a full screen: alternate screen, no cursor, single keys. The terminal is restored whenever
// the process ends in a way that it can detect (return, exception, INT, TERM, HUP, QUIT, SEGV and similar).
// For Ctrl-Z it is also restored, and set up again afterwards. After SIGKILL the terminal is not restored;
// `reset` helps then. Only one object may exist at a time, and only one thread may use it.

#include <sys/types.h>
#include <termios.h>

#include <csignal>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

struct screen_size {
    std::size_t columns = 80, rows = 24;
};

/// Keys that have no character of their own, as values of screen_event::key.
enum special_key : int { key_up = 256, key_down, key_page_up, key_page_down, key_home, key_end };

/// The event for which wait() has returned.
struct screen_event {
    enum class kind { timeout, key, resized, signal, hung_up } what = kind::timeout;
    int key = 0;     ///< an ASCII character, or a special_key
    int signal = 0;  ///< the termination signal
};

/// Removes the first key from `bytes`, which a terminal has sent, and returns it. Escape sequences without a
/// meaning here and characters beyond ASCII are removed and skipped. Returns 0 if no key is left, or if the
/// rest is the beginning of an escape sequence; `complete`: no more bytes follow, so that a single ESC is the
/// key Esc.
[[nodiscard]] int take_key(std::string& bytes, bool complete);

class terminal_screen {
public:
    /// Keys are read from `in` if that is a terminal; `out` must be a terminal. Throws output_error.
    terminal_screen(int in, int out);
    ~terminal_screen();
    terminal_screen(const terminal_screen&) = delete;
    terminal_screen& operator=(const terminal_screen&) = delete;

    [[nodiscard]] screen_size size() const noexcept;
    /// Redraws in place; lines beyond the last row are left out. Lines must fit the width (not counting ANSI
    /// colours).
    void draw(const std::vector<std::string>& lines);
    /// Returns one key per call, in the order in which they were pressed.
    [[nodiscard]] screen_event wait(u64 timeout_ns);

private:
    void enter() noexcept;
    void leave() noexcept;
    void write(const std::string& text) noexcept;
    void suspend_process();
    /// Reads the keyboard; false: the terminal is gone.
    [[nodiscard]] bool read_keys();

    int in_, out_;
    bool keys_ = false, gone_ = false;
    termios before_{};
    sigset_t signals_before_{};
    shm::unique_fd signals_;
    std::string pressed_;  ///< bytes of keys that wait() has not returned yet
};

}  // namespace carousel::supervisor
