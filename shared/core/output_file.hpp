#pragma once
// Files that a user names for output. The same rules apply to every option and key that names such a file:
//   - If the path does not exist or is a regular file, the text is written to a temporary file in the same
//     folder, which is then renamed to the path. So a reader sees either the old file, or the new file, or no
//     file, even if the writer is killed.
//   - If the path is anything else (a device, a FIFO, /dev/stdout), the text is written into it, and the path
//     is never replaced.
//   - If the path is a symbolic link, its target is written by the two rules above, and the link is kept. A
//     link that belongs to another user in a folder like /tmp is refused (EACCES).
// A file that grows while a program works (output_stream) is written in place; its path is resolved by the
// same rules.

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/types.hpp"

namespace carousel {

/// The destination of a path for output.
struct output_target {
    std::string path;      ///< the path after following all symbolic links of its last component
    bool is_file = true;   ///< the path is a regular file or does not exist
    bool replaced = true;  ///< true: replaced by a rename; false: a device, FIFO or mount point
    int descriptor = -1;   ///< descriptor of this process that the path refers to (/dev/stdout); -1: none
};

/// Follows the symbolic links of `path`, including dangling ones. Opens nothing. Returns nothing, with errno
/// set, if a folder of the path can't be searched, if the links form a loop (ELOOP), if a link of another
/// user is refused (EACCES), or if the target is a folder (EISDIR).
[[nodiscard]] std::optional<output_target> find_output(const std::string& path);

/// The temporary file in which process `pid` writes the new content of `path`: ".NAME.carousel-tmp.PID".
[[nodiscard]] std::string temporary_output(const std::string& path, i32 pid);
/// Returns true if `name` (without its folder) is a temporary file of a process that has ended.
[[nodiscard]] bool is_abandoned_output(std::string_view name) noexcept;

/// Returns the cause and the remedy for an error number that a function of this file returned. Like
/// no_room_text, except that for ENXIO and ETIMEDOUT the text is about a FIFO. `otherwise` is another remedy,
/// which is appended to the text.
[[nodiscard]] std::string output_cause(int error_number, const std::string& otherwise = "");

/// Opens a target for writing in place: a regular file is truncated or created, a descriptor is duplicated.
/// If the target is a FIFO, waits up to 10 s until a reader has opened it. Returns the descriptor (CLOEXEC,
/// possibly non-blocking), or -1 with errno set.
[[nodiscard]] int open_output(const output_target& to) noexcept;
/// Writes all of `bytes` at the descriptor's position. Returns 0 or the error number, which is ETIMEDOUT if a
/// FIFO, device or socket accepts no data for 10 s.
[[nodiscard]] int write_output(int fd, std::span<const std::byte> bytes) noexcept;

/// Writes `parts`, in order, to `path` by the rules above. `wanted` is called immediately before the rename
/// (or before opening the target, if it is written in place); if `wanted` returns false, the target is not
/// written. The file is not synced, so the rename protects the file if the process is killed, but not at a
/// power failure. Returns 0 or the error number; after an error a regular file is unchanged. May be called
/// from any thread; several threads may write different paths concurrently.
[[nodiscard]] int write_output_file(const std::string& path,
                                    std::initializer_list<std::span<const std::byte>> parts,
                                    const std::function<bool()>& wanted = {});

/// One output file of a command. The constructor reports a target that can't be written, before the command
/// does its work. One thread.
class output_file {
public:
    /// Opens the temporary file. A target that is written in place is not opened yet but only checked,
    /// because the reader of a FIFO need not exist yet. Messages call the output `what`, for example "the
    /// report" (if `what` is empty, they name the path), and end with `remedy`. Throws output_error.
    explicit output_file(std::string path, std::string what = "",
                         std::string remedy = "choose a file in a folder that you own");
    ~output_file();
    output_file(const output_file&) = delete;
    output_file& operator=(const output_file&) = delete;
    /// Writes the whole output. If a file is replaced, the new file is synced. Called once. Throws
    /// output_error.
    void write(std::string_view text);
    /// Returns false if the target is written in place.
    [[nodiscard]] bool replaces() const noexcept { return target_.replaced; }

private:
    [[noreturn]] void fail(int error_number) const;
    std::string path_, what_, remedy_, temporary_;
    output_target target_;
    int fd_ = -1;
};

/// An output file that grows line by line. One thread.
class output_stream {
public:
    /// Opens `path`; a regular file is truncated. Throws output_error, whose message ends with `remedy`.
    explicit output_stream(std::string path,
                           const std::string& remedy = "choose a file in a folder that you own");
    ~output_stream();
    output_stream(const output_stream&) = delete;
    output_stream& operator=(const output_stream&) = delete;
    /// Appends `text`. Throws output_error.
    void write(std::string_view text);

private:
    std::string path_;
    int fd_ = -1;
};

}  // namespace carousel
