#include "os/console.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "core/executable_path.hpp"
#include "core/io.hpp"
#include "os/table.hpp"

namespace carousel::supervisor {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t max_pending = 1U << 20U;
// PIPE_BUF: a pipe that polls writable accepts this many bytes without blocking
constexpr std::size_t atomic_bytes = 4096;
constexpr std::string_view erase_line = "\r\x1b[K";

}  // namespace

bool understands_escapes(int fd) noexcept {
    const char* kind = std::getenv("TERM");
    return ::isatty(fd) == 1 && kind != nullptr && *kind != 0 && std::string_view(kind) != "dumb";
}

const char* color_of(u32 n) noexcept {
    constexpr const char* colors[] = {"\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[34m", "\x1b[31m"};
    return colors[n % std::size(colors)];
}

void console::append(std::string_view text) {
    if (gone_) return;
    if (pending_.size() + text.size() > max_pending) {
        const std::size_t half = pending_.find('\n', pending_.size() / 2);
        const std::size_t cut = half == std::string::npos ? pending_.size() : half + 1;
        dropped_ += static_cast<u64>(
            std::count(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(cut), '\n'));
        pending_.erase(0, cut);
    }
    pending_ += text;
}

void console::use(journal to, std::string pipeline) {
    journal_ = std::move(to);
    pipeline_ = std::move(pipeline);
}

void console::line(std::string_view text) {
    // the text may quote a stage
    line_of({levels_.next(text), "carousel", ::getpid(), {}, text}, printable(text, "\n\t"));
}

void console::line_of(journal_entry line, std::string_view printed) {
    line.pipeline = pipeline_;
    if (line.level < threshold_ || journal_.send(line)) return;
    if (!status_.empty()) append(erase_line);
    append(printed);
    append("\n");
    if (!status_.empty()) append(status_);
    flush();
}

void console::status(std::string_view text) {
    if (threshold_ > log::level::info || journal_.is_open()) return;
    if (!terminal_) {
        line(text);
        return;
    }
    status_ = text;
    append(erase_line);
    append(status_);
    flush();
}

void console::clear_status() {
    if (!status_.empty()) append(erase_line);
    status_.clear();
    flush();
}

void console::flush() noexcept {
    while (!pending_.empty() && !gone_) {
        const short events = events_of(fd_, POLLOUT);
        if (events == 0) return;
        if ((events & POLLOUT) == 0) {
            gone_ = true;
            break;
        }
        const ssize_t n = ::write(fd_, pending_.data(), std::min(pending_.size(), atomic_bytes));
        if (n > 0) {
            pending_.erase(0, static_cast<std::size_t>(n));
        } else if (n < 0 && errno != EINTR) {
            if (errno == EAGAIN) return;
            gone_ = true;  // EPIPE, EIO: the reader is gone
        }
    }
    if (gone_) pending_.clear();
}

std::string shell_word(const std::string& text) {
    const auto plain = [](unsigned char c) {
        return std::isalnum(c) != 0 ||
               std::string_view("-_./:@%+=,").find(static_cast<char>(c)) != std::string_view::npos;
    };
    if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

std::string command_for(const std::string& program, const std::string& working_folder,
                        const std::string& path) {
    const fs::path file(program);
    const std::string name = file.filename().string();
    // A shell starts the first program of that name in PATH. If that program is another version, the name
    // alone is not enough.
    std::string folders = path + ":";
    for (std::size_t at = 0, end; (end = folders.find(':', at)) != std::string::npos; at = end + 1) {
        const fs::path found = fs::path(folders.substr(at, end - at)) / name;
        if (end == at || ::access(found.c_str(), X_OK) != 0) continue;
        std::error_code failed;
        if (fs::equivalent(found, file, failed) && !failed) return shell_word(name);
        break;
    }
    const std::string inside = working_folder == "/" ? "/" : working_folder + "/";
    if (!program.starts_with(inside)) return shell_word(program);
    const std::string rest = program.substr(inside.size());
    return shell_word(rest.find('/') == std::string::npos ? "./" + rest : rest);
}

std::string own_command() {
    std::error_code failed;
    return own_command_from(fs::current_path(failed).string());
}

std::string own_command_from(const std::string& working_folder) {
    const std::string program = executable_path();
    if (program.empty()) return "carousel";
    const char* path = std::getenv("PATH");
    return command_for(program, working_folder, path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
}

}  // namespace carousel::supervisor
