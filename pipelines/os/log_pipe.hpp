#pragma once
// A stage's stdout and stderr: one pipe per process, read without blocking and always to its end, so that a
// stage never waits for its log. Lines are printed on the console after an aligned, coloured "stage | " and
// appended as JSON lines to DIR/logs/STAGE.jsonl; the supervisor's own lines go to DIR/logs/@carousel.jsonl
// (no stage can have that name). The file has the text as it was written; on a terminal and in `carousel
// logs` control characters are visible escapes (printable() of table.hpp), so that no stage can change the
// state of a terminal. A file that has grown to 4 MiB is renamed to STAGE.jsonl.1, replacing the previous
// one: at most 8 MiB per stage instance. log_reader.hpp reads them. If the disk is full or the reader is
// gone, log lines are lost, but no stage is affected.

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "core/types.hpp"
#include "os/console.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

/// Splits a stream into lines; a line that is longer than max_line is cut after max_line bytes.
class line_splitter {
public:
    static constexpr std::size_t max_line = 8192;
    /// Calls fn(line) for each complete line.
    template <typename F>
    void feed(std::string_view bytes, F&& fn) {
        for (const char c : bytes) {
            if (c == '\n' || partial_.size() >= max_line) {
                fn(std::string_view(partial_));
                partial_.clear();
            }
            if (c != '\n' && c != '\r') partial_ += c;
        }
    }
    /// Calls fn with the incomplete last line after the end of the stream.
    template <typename F>
    void finish(F&& fn) {
        if (!partial_.empty()) fn(std::string_view(partial_));
        partial_.clear();
    }

private:
    std::string partial_;
};

/// Receives the lines of one stage instance. The object exists for the whole run, and consecutive processes
/// of the instance use it.
class log_sink {
public:
    /// `label` is printed before the bar, padded to `width`; `color` is the stage's number. `path`: the JSONL
    /// file, or "".
    log_sink(console& out, std::string label, std::size_t width, u32 color, std::string path);
    /// If a process prints an error with exactly the lines of an earlier process of the instance, the console
    /// shows one line instead, "repeats N lines of pid P"; the file has every line.
    void line(i32 pid, std::string_view text);
    /// As line(), for what another program has found out about that process; it is not one of its last lines.
    void line_about(i32 pid, std::string_view text);
    /// Called when the process has ended: prints the "repeats" line if one is due.
    void end_of_process();
    /// Writes to the file only, for text that the console shows in another form.
    void note(i32 pid, std::string_view text);
    /// Returns the last lines (5 at most), oldest first.
    [[nodiscard]] const std::deque<std::string>& last() const noexcept { return last_; }
    /// The line as it is printed, with control characters other than tabs escaped.
    [[nodiscard]] static std::string prefixed(std::string_view label, std::size_t width, u32 color,
                                              bool colored, std::string_view text);

private:
    void print(i32 pid, std::string_view text);
    void append_json(i32 pid, std::string_view text);
    [[nodiscard]] bool is_repeated(i32 pid, std::string_view text);

    struct printed_line {
        i32 pid;
        std::string text;
    };
    console* console_;
    std::string label_;
    std::size_t width_;
    u32 color_;
    std::string path_;
    line_levels levels_;
    shm::unique_fd file_;
    u64 file_bytes_ = 0;
    bool file_failed_ = false;
    std::deque<std::string> last_;
    std::deque<printed_line> printed_;  ///< the newest lines on the console
    i32 repeats_pid_ = 0;               ///< the process whose lines are being repeated
    u64 repeated_ = 0;                  ///< number of repeated lines since the last line on the console
};

/// The read end of one process's pipe.
class log_pipe {
public:
    log_pipe() = default;
    /// Creates the pipe; `write_end` becomes the child's stdout and stderr. Throws shm_error if no file
    /// descriptors are left.
    [[nodiscard]] static log_pipe make(shm::unique_fd& write_end);
    [[nodiscard]] int fd() const noexcept { return read_.get(); }
    /// Reads what is available. Returns false when the pipe has ended (or was never created).
    bool drain(log_sink& to, i32 pid);
    /// Called after the process has ended: reads the rest and closes the pipe, even if another process still
    /// holds the write end.
    void close(log_sink& to, i32 pid);

private:
    shm::unique_fd read_;
    line_splitter lines_;
};

}  // namespace carousel::supervisor
