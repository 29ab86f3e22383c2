#pragma once
// The terminal as a screen of ours: alternate screen, no cursor, keys one by one; given back as it was at any
// end that a process can see: return, exception, INT, TERM, HUP, QUIT, Ctrl-Z (and taken again), SEGV and the
// like. Only SIGKILL leaves it; `reset` helps then. One at a time, one thread.

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

/// What ended a wait.
struct screen_event {
    enum class kind { timeout, key, resized, signal, hung_up } what = kind::timeout;
    char key = 0;    ///< the key; an arrow and the like is none
    int signal = 0;  ///< that asks for the end
};

class terminal_screen {
public:
    /// `in` is where keys come from, if it is a terminal; `out` is a terminal. Throws output_error.
    terminal_screen(int in, int out);
    ~terminal_screen();
    terminal_screen(const terminal_screen&) = delete;
    terminal_screen& operator=(const terminal_screen&) = delete;

    [[nodiscard]] screen_size size() const noexcept;
    /// Redraws in place; lines beyond the last row are left out. Lines fit the width (ANSI colours aside).
    void draw(const std::vector<std::string>& lines);
    [[nodiscard]] screen_event wait(u64 timeout_ns);

private:
    void enter() noexcept;
    void leave() noexcept;
    void write(const std::string& text) noexcept;
    void suspend_process();

    int in_, out_;
    bool keys_ = false, gone_ = false;
    termios before_{};
    sigset_t signals_before_{};
    shm::unique_fd signals_;
};

}  // namespace carousel::supervisor
