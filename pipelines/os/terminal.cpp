#include "os/terminal.hpp"

#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/process.hpp"

namespace carousel::supervisor {
namespace {

constexpr const char* enter_text = "\x1b[?1049h\x1b[?25l\x1b[2J";
constexpr const char* leave_text = "\x1b[0m\x1b[?25h\x1b[?1049l";
constexpr u64 sequence_ns = 50 * ns_per_ms;  // within this time an escape sequence arrives as a whole
constexpr int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGSYS};

// The data for the crash handler, which may use no other data.
struct {
    volatile std::sig_atomic_t out = -1, in = -1;
    termios before;
} saved_terminal;

void restore_terminal(int signal) {
    if (saved_terminal.out >= 0) {
        (void)!::write(saved_terminal.out, leave_text, std::strlen(leave_text));
        if (saved_terminal.in >= 0) ::tcsetattr(saved_terminal.in, TCSANOW, &saved_terminal.before);
    }
    ::signal(signal, SIG_DFL);
    ::raise(signal);
}

/// The key of a control sequence ESC [ PARAMETERS FINAL; 0: another sequence.
int key_of_sequence(std::string_view parameters, char final) {
    switch (final) {
        case 'A':
            return key_up;
        case 'B':
            return key_down;
        case 'H':
            return key_home;
        case 'F':
            return key_end;
        case '~':
            return parameters == "5"                        ? key_page_up
                   : parameters == "6"                      ? key_page_down
                   : parameters == "1" || parameters == "7" ? key_home
                   : parameters == "4" || parameters == "8" ? key_end
                                                            : 0;
        default:
            return 0;
    }
}

}  // namespace

int take_key(std::string& bytes, bool complete) {
    constexpr char escape = '\x1b';
    while (!bytes.empty()) {
        const char first = bytes[0];
        std::size_t used = 1;
        int key = static_cast<unsigned char>(first) < 0x80 ? first : 0;
        if (first == escape && bytes.size() == 1 && !complete) return 0;
        if (first == escape && bytes.size() > 1 && bytes[1] != escape) {
            key = 0;
            used = 2;  // ESC and a character: Alt and that key
            if (bytes[1] == '[' || bytes[1] == 'O') {
                while (used < bytes.size() && bytes[used] >= 0x20 && bytes[used] < 0x40) ++used;
                if (used == bytes.size() && !complete) return 0;
                if (used < bytes.size()) {
                    key = key_of_sequence(std::string_view(bytes).substr(2, used - 2), bytes[used]);
                    ++used;
                }
            }
        }
        bytes.erase(0, used);
        if (key != 0) return key;
    }
    return 0;
}

terminal_screen::terminal_screen(int in, int out) : in_(in), out_(out) {
    if (::isatty(out) == 0) throw output_error("the output is not a terminal");
    keys_ = ::isatty(in) != 0 && ::tcgetattr(in, &before_) == 0;
    const sigset_t wanted = not_ignored({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP});
    pthread_sigmask(SIG_BLOCK, &wanted, &signals_before_);
    signals_.reset(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) {
        const int why = errno;
        pthread_sigmask(SIG_SETMASK, &signals_before_, nullptr);
        throw output_error("making a signalfd: " + errno_text(why));
    }
    saved_terminal.before = before_;
    saved_terminal.in = keys_ ? in_ : -1;
    saved_terminal.out = out_;
    for (const int s : crashes) std::signal(s, restore_terminal);
    enter();
}

terminal_screen::~terminal_screen() {
    leave();
    saved_terminal.out = -1;
    for (const int s : crashes) std::signal(s, SIG_DFL);
    pthread_sigmask(SIG_SETMASK, &signals_before_, nullptr);
}

void terminal_screen::enter() noexcept {
    if (keys_) {
        termios raw = before_;
        raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // ISIG stays: Ctrl-C is a signal
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        ::tcsetattr(in_, TCSANOW, &raw);
    }
    write(enter_text);
}

void terminal_screen::leave() noexcept {
    write(leave_text);
    if (keys_) ::tcsetattr(in_, TCSANOW, &before_);
}

void terminal_screen::write(const std::string& text) noexcept {
    for (std::size_t at = 0; at < text.size() && !gone_;) {
        const ssize_t n = ::write(out_, text.data() + at, text.size() - at);
        if (n > 0)
            at += static_cast<std::size_t>(n);
        else if (errno == EAGAIN) {
            (void)events_of(out_, POLLOUT, now_ns() + 100 * ns_per_ms);
        } else if (errno != EINTR)
            gone_ = true;
    }
}

screen_size terminal_screen::size() const noexcept {
    winsize w{};
    if (::ioctl(out_, TIOCGWINSZ, &w) != 0 || w.ws_col == 0 || w.ws_row == 0) return {};
    return {w.ws_col, w.ws_row};
}

void terminal_screen::draw(const std::vector<std::string>& lines) {
    const std::size_t rows = std::min(lines.size(), size().rows);
    std::string text = "\x1b[H";
    for (std::size_t k = 0; k < rows; ++k) text += (k == 0 ? "" : "\r\n") + lines[k] + "\x1b[0m\x1b[K";
    write(text + "\x1b[J");
}

void terminal_screen::suspend_process() {
    leave();
    ::kill(::getpid(), SIGSTOP);  // continues here after `fg`
    enter();
}

bool terminal_screen::read_keys() {
    char bytes[64];
    const ssize_t n = ::read(in_, bytes, sizeof bytes);
    if (n > 0) pressed_.append(bytes, static_cast<std::size_t>(n));
    return n > 0;
}

screen_event terminal_screen::wait(u64 timeout_ns) {
    if (gone_) return {screen_event::kind::hung_up, 0, 0};
    if (const int key = take_key(pressed_, false); key != 0) return {screen_event::kind::key, key, 0};
    pollfd all[2] = {{signals_.get(), POLLIN, 0}, {in_, POLLIN, 0}};
    if (poll_until(all, keys_ ? 2 : 1, now_ns() + std::min(timeout_ns, 60 * ns_per_s)) <= 0) return {};
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) == sizeof info) {
        const int signal = static_cast<int>(info.ssi_signo);
        if (signal == SIGTSTP) suspend_process();
        if (signal == SIGTSTP || signal == SIGWINCH) return {screen_event::kind::resized, 0, 0};
        return {screen_event::kind::signal, 0, signal};
    }
    if (all[1].revents == 0) return {};
    if (!read_keys()) return {screen_event::kind::hung_up, 0, 0};
    int key = take_key(pressed_, false);
    while (key == 0 && !pressed_.empty() && events_of(in_, POLLIN, now_ns() + sequence_ns) != 0) {
        if (!read_keys()) return {screen_event::kind::hung_up, 0, 0};
        key = take_key(pressed_, false);
    }
    if (key == 0) key = take_key(pressed_, true);
    return key == 0 ? screen_event{} : screen_event{screen_event::kind::key, key, 0};
}

}  // namespace carousel::supervisor
