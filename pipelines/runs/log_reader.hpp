#pragma once
// Reads the log files of a run, DIR/logs/STAGE.jsonl and STAGE.jsonl.1 (written by log_pipe.hpp), also while
// they grow, rotate and disappear. The class only reads, so any process of the user can use it; one thread
// per object.
//
// A file that was open when it was renamed or removed is still read to its end. Lines are lost only if a
// stage writes more than both files hold (8 MiB) between two calls of take(). There are no errors: a file
// that can't be read, or a line that is not a record, is skipped.

#include <map>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

struct log_record {
    f64 time = 0;       ///< seconds since 1970
    std::string stage;  ///< "fragment", "fragment.1", or "carousel": the supervisor itself
    std::string line;
    i32 pid = 0;
    u32 color = 0;  ///< number of the stage
};

class log_reader {
public:
    explicit log_reader(std::string folder) : folder_(std::move(folder)) {}
    /// Returns the records written since the last call, in order of time.
    [[nodiscard]] std::vector<log_record> take();
    /// Returns the labels for which a file exists.
    [[nodiscard]] std::vector<std::string> labels() const;

private:
    struct file {
        shm::unique_fd fd;
        std::string partial;
    };
    void read_on(file& f, std::vector<log_record>& out) const;
    void read_whole(const std::string& path, std::vector<log_record>& out) const;
    void follow(const std::string& path, std::vector<log_record>& out);

    std::string folder_;
    std::map<std::string, file> files_;  ///< by path
};

/// Adds the lines that stages wrote without a supervisor, LOGS/STAGE.SEAT.PID.alone
/// (runner/supervisor_link.hpp). These lines get the time at which their file was last written. Keeps `lines`
/// in order of time.
void add_lines_alone(const std::string& logs, std::vector<log_record>& lines);

/// Returns seconds since 1970 from "10s", "5m", "2h", "1d" (before `now`), or from an RFC 3339 time
/// ("2026-01-31T12:00:00Z", "...+01:00"; without a zone: local time). Throws config_error that names --since.
[[nodiscard]] f64 since_from(const std::string& text, f64 now);
/// "2026-01-31T12:00:00.123Z"
[[nodiscard]] std::string timestamp_text(f64 time);

}  // namespace carousel::supervisor
