#pragma once
// Files that a user names for output. One rule holds for every option and key that names one:
//   nothing is there, or a regular file: the text goes to a temporary file in the same folder, which is
//   renamed
//       over it. A reader, or a process that is started after a kill, sees the old file, the new file or
//       none.
//   anything else is there (a device, a FIFO, /dev/stdout): it is written into and never replaced.
//   a symbolic link: its target is written by the two rules above, and the link stays. A link of another user
//   in
//       a folder like /tmp is refused (EACCES).
// A file that grows while a program works (output_stream) is written in place; its name obeys the same rule.

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/types.hpp"

namespace carousel {

/// Where a path for output leads.
struct output_target {
    std::string path;     ///< all symbolic links of the last component are followed
    bool is_file = true;  ///< a regular file or nothing is there
    bool replaced =
        true;  ///< such a file can be renamed over: it isn't a mount of its own (a container's volume)
    int descriptor = -1;  ///< this process's own descriptor that the path names (/dev/stdout); -1: none
};

/// Follows the symbolic links of `path`, dangling ones too. Opens nothing. Returns nothing, and errno, where
/// a folder of the path can't be searched, links form a loop (ELOOP), or a folder is there (EISDIR).
[[nodiscard]] std::optional<output_target> find_output(const std::string& path);

/// The temporary file in which process `pid` writes what becomes `path`: ".NAME.carousel-tmp.PID".
[[nodiscard]] std::string temporary_output(const std::string& path, i32 pid);
/// Is `name` (without its folder) a temporary file of a process that has ended?
[[nodiscard]] bool is_abandoned_output(std::string_view name) noexcept;

/// The cause of an error number that a function of this file returned, and what to do: no_room_text, except
/// for what ENXIO and ETIMEDOUT mean of a FIFO. `otherwise`: what else to do, after the remedy that a
/// cause has.
[[nodiscard]] std::string output_cause(int error_number, const std::string& otherwise = "");

/// Opens a target for writing in place: a regular file is emptied or made, a descriptor is duplicated. A FIFO
/// must get a reader within 10 s. Returns the descriptor (CLOEXEC, perhaps non-blocking); -1 with errno.
[[nodiscard]] int open_output(const output_target& to) noexcept;
/// Writes all of `bytes` at the descriptor's position. A FIFO, device or socket that takes nothing for 10 s
/// is ETIMEDOUT. Returns 0 or the error number.
[[nodiscard]] int write_output(int fd, std::span<const std::byte> bytes) noexcept;

/// Writes `parts`, in order, to `path` by the rule above. `wanted` is asked last (of a target that is written
/// into: first); when it returns false, nothing is written. Not synced: it guards against a killed process,
/// not against a power failure. Returns 0 or the error number; after an error a regular file is unchanged.
/// Any thread; several threads may write at once, each another path.
[[nodiscard]] int write_output_file(const std::string& path,
                                    std::initializer_list<std::span<const std::byte>> parts,
                                    const std::function<bool()>& wanted = {});

/// One output of a command. A target that can't be written is reported by the constructor, before the work is
/// done. One thread.
class output_file {
public:
    /// Opens the temporary file. What is written into is only checked: a FIFO's reader need not be there yet.
    /// Messages name the output `what` ("the report"; "": by its path) and end with `remedy`. Throws
    /// output_error.
    explicit output_file(std::string path, std::string what = "",
                         std::string remedy = "choose a file in a folder of yours");
    ~output_file();
    output_file(const output_file&) = delete;
    output_file& operator=(const output_file&) = delete;
    /// All of it, once, and synced. Throws output_error.
    void write(std::string_view text);
    /// False: the target is written into.
    [[nodiscard]] bool replaces() const noexcept { return target_.replaced; }

private:
    [[noreturn]] void fail(int error_number) const;
    std::string path_, what_, remedy_, temporary_;
    output_target target_;
    int fd_ = -1;
};

/// An output that grows line by line. One thread.
class output_stream {
public:
    /// Opens `path`: a regular file is emptied. Throws output_error, which ends with `remedy`.
    explicit output_stream(std::string path,
                           const std::string& remedy = "choose a file in a folder of yours");
    ~output_stream();
    output_stream(const output_stream&) = delete;
    output_stream& operator=(const output_stream&) = delete;
    /// Throws output_error.
    void write(std::string_view text);

private:
    std::string path_;
    int fd_ = -1;
};

}  // namespace carousel
