#include "top/picture_pipe.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "os/descriptors.hpp"
#include "shm/process_id.hpp"

namespace carousel::supervisor {
namespace {
constexpr std::size_t most_pixels = 50'000;  // carousel-peek has the same limit
constexpr std::string_view error_mark = "error: ";
}  // namespace

picture_pipe::picture_pipe(const std::string& program, const run::record& run,
                           const std::string& of) noexcept {
    try {
        auto [mine, theirs] = shm::socket_pair();
        const shm::unique_fd nowhere = open_null(O_WRONLY);
        spawn_request r;
        r.argv = {program, run::run_folder(run.name), run.run_id, of};
        r.output = nowhere.get();
        r.extra_fd = theirs.get();
        child_ = spawn(r);
        socket_ = std::move(mine);
    } catch (const std::exception& e) {
        error_text_ = e.what();
    }
}

// Closing the socket ends the child; if that has no effect within 500 ms the child is killed.
picture_pipe::~picture_pipe() {
    socket_.reset();
    if (!child_.pidfd) return;
    if (events_of(child_.pidfd.get(), POLLIN, now_ns() + 500 * ns_per_ms) == 0) {
        shm::signal_pidfd(child_.pidfd.get(), SIGKILL);
        (void)events_of(child_.pidfd.get(), POLLIN, now_ns() + 2 * ns_per_s);
    }
    (void)reap(child_.pidfd.get());
}

void picture_pipe::fail(const std::string& why) {
    error_text_ = why;
    socket_.reset();
}

// A child that can't start sends the reason and exits, possibly before the request is sent. The request then
// fails or is never read; in the latter case the kernel reports ECONNRESET once, before the child's message
// is received.
void picture_pipe::has_ended() {
    shm::message m;
    for (int attempt = 0; attempt < 2; ++attempt) {
        if (shm::receive_message(socket_.get(), m) != shm::receive_status::ok) continue;
        if (m.text.starts_with(error_mark)) return fail(m.text.substr(error_mark.size()));
    }
    fail("carousel-peek has ended");
}

void picture_pipe::take(u64 wait_ns) {
    shm::message m;
    const shm::receive_status got = shm::receive_message(socket_.get(), m, wait_ns);
    if (got == shm::receive_status::would_block) return;
    due_ = false;
    if (got != shm::receive_status::ok) return has_ended();
    if (m.text.starts_with(error_mark)) return fail(m.text.substr(error_mark.size()));
    std::size_t width = 0, height = 0, begin = m.text.find('\n');
    // "none"
    if (begin == std::string::npos || std::sscanf(m.text.c_str(), "%zu %zu", &width, &height) != 2) return;
    const std::size_t tab = std::min(m.text.find('\t'), begin);
    std::string carried = tab < begin ? m.text.substr(tab + 1, begin - tab - 1) : "";
    ++begin;
    if (width == 0 || height == 0 || width > most_pixels / height ||
        m.text.size() - begin != width * height * 3)
        return;
    carried_ = std::move(carried);
    lines_ = half_blocks(reinterpret_cast<const unsigned char*>(m.text.data() + begin), width, height);
}

void picture_pipe::ask(std::size_t columns, std::size_t rows, u64 wait_ns) {
    if (columns == 0 || rows == 0) return;
    const std::size_t width = std::min<std::size_t>(columns, 400),
                      height = std::min(rows * 2, most_pixels / width);
    const u64 until = now_ns() + wait_ns;
    for (;;) {
        if (socket_ && due_) take(wait_ns);
        if (!socket_ || due_) return;
        due_ = shm::send_message(socket_.get(), fmt::format("{} {}", width, height));
        if (!due_) return has_ended();
        if (now_ns() >= until || !lines_.empty()) return;
    }
}

std::vector<std::string> half_blocks(const unsigned char* rgb, std::size_t width, std::size_t height) {
    std::vector<std::string> lines;
    for (std::size_t y = 0; y < height; y += 2) {
        std::string line;
        for (std::size_t x = 0; x < width; ++x) {
            const unsigned char* up = rgb + (y * width + x) * 3;
            line += fmt::format("\x1b[38;2;{};{};{}m", up[0], up[1], up[2]);
            if (y + 1 < height) {
                const unsigned char* low = up + width * 3;
                line += fmt::format("\x1b[48;2;{};{};{}m", low[0], low[1], low[2]);
            }
            line += "\u2580";
        }
        lines.push_back(line + "\x1b[0m");
    }
    return lines;
}

}  // namespace carousel::supervisor
