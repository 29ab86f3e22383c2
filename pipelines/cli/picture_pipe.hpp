#pragma once
// The newest picture of a run as text, from carousel-peek: a process of its own, because this one may load no
// CUDA. It asks, and goes on; the answer is there at one of the next looks. Whatever happens to that process
// costs the picture and nothing else.

#include <string>
#include <vector>

#include "core/types.hpp"
#include "os/spawn.hpp"
#include "run/directory.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

class picture_pipe {
public:
    /// `program`: carousel-peek; `of`: STAGE or STAGE/PLANE, "" what the last sink reads. What goes wrong is
    /// in error_text().
    picture_pipe(const std::string& program, const run::record& run, const std::string& of) noexcept;
    ~picture_pipe();
    picture_pipe(const picture_pipe&) = delete;
    picture_pipe& operator=(const picture_pipe&) = delete;

    /// Takes an answer, if one is there, and asks for a picture of at most so many characters; half a
    /// character is a pixel. Does nothing while an answer is due. With wait_ns: waits so long for the first
    /// picture.
    void ask(std::size_t columns, std::size_t rows, u64 wait_ns = 0);
    /// The last picture, as lines of half blocks in 24 bit colours; empty: none yet.
    [[nodiscard]] const std::vector<std::string>& lines() const noexcept { return lines_; }
    /// What its frame carries beside it, on one line; "": nothing.
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

/// Lines of upper half blocks: the letter's colour is the upper pixel, the background the lower one.
[[nodiscard]] std::vector<std::string> half_blocks(const unsigned char* rgb, std::size_t width,
                                                   std::size_t height);

}  // namespace carousel::supervisor
