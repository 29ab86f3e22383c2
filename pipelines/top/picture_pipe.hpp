#pragma once
// Gets the newest picture of a run as text from carousel-peek, which is a separate process because this
// process must not load CUDA. ask() does not block (unless wait_ns is given); the reply is received by a
// later call. If carousel-peek fails, only the picture is missing.

#include <string>
#include <vector>

#include "core/types.hpp"
#include "os/spawn.hpp"
#include "run/directory.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

class picture_pipe {
public:
    /// `program`: carousel-peek; `of`: STAGE or STAGE/PLANE; "": the ring that the last sink reads. Errors
    /// are in error_text().
    picture_pipe(const std::string& program, const run::record& run, const std::string& of) noexcept;
    ~picture_pipe();
    picture_pipe(const picture_pipe&) = delete;
    picture_pipe& operator=(const picture_pipe&) = delete;

    /// Receives a reply if there is one, then requests a picture of at most columns x rows characters; a
    /// pixel is half a character. Does nothing while a reply is outstanding. If wait_ns is not 0, waits up to
    /// that time for the first picture.
    void ask(std::size_t columns, std::size_t rows, u64 wait_ns = 0);
    /// Returns the last picture as lines of half blocks in 24-bit colours; empty if there is no picture yet.
    [[nodiscard]] const std::vector<std::string>& lines() const noexcept { return lines_; }
    /// Returns the frame's metadata on one line; "" if it has none.
    [[nodiscard]] const std::string& carried() const noexcept { return carried_; }
    [[nodiscard]] const std::string& error_text() const noexcept { return error_text_; }

private:
    void take(u64 wait_ns);
    void has_ended();
    void fail(const std::string& why);

    shm::unique_fd socket_;
    spawned child_;
    bool due_ = false;
    std::vector<std::string> lines_;
    std::string carried_, error_text_;
};

/// Returns lines of upper half blocks: the foreground colour is the upper pixel, the background colour the
/// lower one.
[[nodiscard]] std::vector<std::string> half_blocks(const unsigned char* rgb, std::size_t width,
                                                   std::size_t height);

}  // namespace carousel::supervisor
