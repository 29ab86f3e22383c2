#pragma once
// What a command writes: a file that is there whole, or not at all.

#include <string>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

/// The file beside its final name, open from the start: what can't be written is told before the work is
/// done.
class output_file {
public:
    /// Where process `pid` writes what is to be `path`.
    [[nodiscard]] static std::string part_path(const std::string& path, i32 pid);
    /// Throws output_error: it can't be made.
    explicit output_file(std::string path);
    ~output_file();
    output_file(const output_file&) = delete;
    output_file& operator=(const output_file&) = delete;
    /// All of it, once. Throws output_error.
    void write(const std::string& text);

private:
    std::string path_, part_;
    shm::unique_fd fd_;
};

}  // namespace carousel::supervisor
