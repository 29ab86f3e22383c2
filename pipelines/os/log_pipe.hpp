#pragma once
// A stage's stdout and stderr: one pipe a process, read without blocking and always to its end, so that a
// stage never waits for its log. Lines go to the console behind an aligned, coloured "stage | " and as JSON
// lines to DIR/logs/STAGE.jsonl; what the supervisor says goes to DIR/logs/@carousel.jsonl (no stage can have
// that name). A file that has grown to 4 MiB becomes STAGE.jsonl.1, in the place of the one before: at most 8
// MiB a stage instance. log_reader.hpp reads them. A full disk or a missing reader costs log lines, never a
// stage.

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "core/types.hpp"
#include "os/console.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

/// Cuts a stream into lines; a line longer than max_line is cut there.
class line_splitter {
public:
    static constexpr std::size_t max_line = 8192;
    /// Calls fn(line) for each line that is complete.
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
    /// The rest, when the stream has ended.
    template <typename F>
    void finish(F&& fn) {
        if (!partial_.empty()) fn(std::string_view(partial_));
        partial_.clear();
    }

private:
    std::string partial_;
};

/// Where the lines of one stage instance go. Lives as long as the run; several processes in a row use it.
class log_sink {
public:
    /// `label` is what stands before the bar, padded to `width`; `color` is the stage's number. `path`: the
    /// JSONL file, or "".
    log_sink(console& out, std::string label, std::size_t width, u32 color, std::string path);
    /// An error that an earlier process of the instance has printed word for word becomes one line on the
    /// console, "repeats N lines of pid P"; the file has every line.
    void line(i32 pid, std::string_view text);
    /// The process has ended: nothing of it is held back any more.
    void end_of_process();
    /// The same for the file alone: what the console has said in its own way.
    void note(i32 pid, std::string_view text);
    /// The last lines, oldest first, at most 5.
    [[nodiscard]] const std::deque<std::string>& last() const noexcept { return last_; }
    [[nodiscard]] static std::string prefixed(std::string_view label, std::size_t width, u32 color,
                                              bool colored, std::string_view text);

private:
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
    shm::unique_fd file_;
    u64 file_bytes_ = 0;
    bool file_failed_ = false;
    std::deque<std::string> last_;
    std::deque<printed_line> printed_;  ///< the newest that are on the console
    i32 repeats_pid_ = 0;               ///< whose lines are being repeated
    u64 repeated_ = 0;                  ///< how many were, since the last line on the console
};

/// The reading end of one process's pipe.
class log_pipe {
public:
    log_pipe() = default;
    /// Makes the pipe; `write_end` is what the child gets as stdout and stderr. Throws shm_error (no file
    /// descriptors left).
    [[nodiscard]] static log_pipe make(shm::unique_fd& write_end);
    [[nodiscard]] int fd() const noexcept { return read_.get(); }
    /// Takes what is there. False when the pipe has ended (or was never made).
    bool drain(log_sink& to, i32 pid);
    /// The process is gone: takes the rest and closes, even if somebody else still holds the writing end.
    void close(log_sink& to, i32 pid);

private:
    shm::unique_fd read_;
    line_splitter lines_;
};

}  // namespace carousel::supervisor
