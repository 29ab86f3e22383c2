#include "os/log_pipe.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json.hpp"
#include "os/descriptors.hpp"
#include "os/table.hpp"

namespace carousel::supervisor {
namespace {
constexpr std::size_t max_last_lines = 5;
// only one older file is kept, because run directories are often on a tmpfs
constexpr u64 max_file_bytes = 4U << 20U;
constexpr std::size_t compared_lines = 64;  // enough lines for a traceback and its surroundings
constexpr int reads_at_once = 16;  // a limit, so that a stage with much output does not delay the other
                                   // stages
}  // namespace

log_sink::log_sink(console& out, std::string label, std::size_t width, u32 color, std::string path)
    : console_(&out), label_(std::move(label)), width_(width), color_(color), path_(std::move(path)) {}

std::string log_sink::prefixed(std::string_view label, std::size_t width, u32 color, bool colored,
                               std::string_view text) {
    const std::string shown = printable(text, "\n\t");
    if (colored) return fmt::format("{}{:<{}} |{} {}", color_of(color), label, width, color_off, shown);
    return fmt::format("{:<{}} | {}", label, width, shown);
}

void log_sink::line(i32 pid, std::string_view text) {
    std::erase(last_, text);  // an equal earlier line is removed first, so that an error that every process
                              // repeats does not displace other lines
    last_.emplace_back(text);
    if (last_.size() > max_last_lines) last_.pop_front();
    line_about(pid, text);
}

void log_sink::line_about(i32 pid, std::string_view text) {
    note(pid, text);
    if (is_repeated(pid, text)) return;
    end_of_process();
    printed_.push_back({pid, std::string(text)});
    if (printed_.size() > compared_lines) printed_.pop_front();
    print(pid, text);
}

void log_sink::print(i32 pid, std::string_view text) {
    console_->line_of({levels_.next(text), label_, pid, {}, text},
                      prefixed(label_, width_, color_, console_->color(), text));
}

// A repetition begins at the first line of an error, and ends at the first line that differs from the earlier
// process's output.
bool log_sink::is_repeated(i32 pid, std::string_view text) {
    if (repeated_ == 0 && log::level_of(text) != log::level::error) return false;
    for (const printed_line& p : printed_) {
        if (p.pid == pid || p.text != text) continue;
        repeats_pid_ = p.pid;
        ++repeated_;
        return true;
    }
    return false;
}

void log_sink::end_of_process() {
    if (repeated_ == 0) return;
    print(repeats_pid_,
          fmt::format("repeats {} line{} of pid {}", repeated_, repeated_ == 1 ? "" : "s", repeats_pid_));
    repeated_ = 0;
}

void log_sink::note(i32 pid, std::string_view text) {
    if (!path_.empty()) append_json(pid, text);
}

void log_sink::append_json(i32 pid, std::string_view text) {
    if (file_failed_) return;
    if (!file_ || file_bytes_ > max_file_bytes) {
        if (file_) std::rename(path_.c_str(), (path_ + ".1").c_str());
        file_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600));
        struct stat info {};
        file_bytes_ = file_ && ::fstat(file_.get(), &info) == 0 ? static_cast<u64>(info.st_size) : 0;
    }
    timeval t{};
    gettimeofday(&t, nullptr);
    const nlohmann::json record{
        {"time", static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6},
        {"stage", label_},
        {"color", color_},
        {"pid", pid},
        {"line", std::string(text)}};
    const std::string out = record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (!file_ || !write_whole(file_.get(), out.data(), out.size())) {
        file_failed_ = true;  // the error is reported once; the run continues without the file
        console_->line(
            fmt::format("warning: the log {} can't be written ({}), so its lines are only printed here",
                        path_, no_room_text(errno, "")));
    }
    file_bytes_ += out.size();
}

log_pipe log_pipe::make(shm::unique_fd& write_end) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        const int why = errno;
        throw_system_error("making a log pipe", why, no_file_text(why));
    }
    log_pipe p;
    p.read_.reset(ends[0]);
    write_end.reset(ends[1]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);  // only the read end is nonblocking; the stage's own writes still
                                            // block
    return p;
}

bool log_pipe::drain(log_sink& to, i32 pid) {
    if (!read_) return false;
    char bytes[16384];
    for (int k = 0; k < reads_at_once; ++k) {
        const ssize_t n = ::read(read_.get(), bytes, sizeof bytes);
        if (n > 0) {
            lines_.feed({bytes, static_cast<std::size_t>(n)},
                        [&](std::string_view line) { to.line(pid, line); });
            if (static_cast<std::size_t>(n) < sizeof bytes) return true;
        } else if (n == 0) {
            lines_.finish([&](std::string_view line) { to.line(pid, line); });
            return false;
        } else {
            return errno == EAGAIN || errno == EINTR;
        }
    }
    return true;
}

void log_pipe::close(log_sink& to, i32 pid) {
    drain(to, pid);
    lines_.finish([&](std::string_view line) { to.line(pid, line); });
    to.end_of_process();
    read_.reset();
}

}  // namespace carousel::supervisor
