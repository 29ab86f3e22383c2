// carousel-peek: sends the newest picture of a run, scaled down, to `carousel top --image`, which must not
// load CUDA itself. Reads the ring as a `latest` reader (viewer/watch/tap.hpp): it never blocks the pipeline,
// and may be killed at any time.
//   carousel-peek RUN_FOLDER RUN_ID [STAGE[/PLANE]]
// fd 3 is a SOCK_SEQPACKET socket to the client; this process ends when the client closes it. The client
// sends "WIDTH HEIGHT" and receives one of
//   "WIDTH HEIGHT SEQUENCE\tWORDS\n" and WIDTH x HEIGHT RGB bytes, top row first, at most the requested size;
//                  WORDS: one line with the scale of the values and the frame's metadata
//   "none"         while there is no picture
//   "error: TEXT"  if there cannot be one, followed by exit

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <string>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "run/directory.hpp"
#include "shm/block_guard.hpp"
#include "shm/segment.hpp"
#include "viewer/watch/tap.hpp"

namespace {

using namespace carousel;
constexpr int socket_fd = 3;
constexpr u64 patience_ns = 250 * ns_per_ms;  // time limit of the wait for a newer picture (a paused pipeline
                                              // has none)
constexpr u32 most_pixels = 50'000;  // limit of the size of a picture: a message must have room for 3
                                     // bytes per pixel

struct small_picture {
    u32 width = 0, height = 0;
    std::string rgb;  ///< 3 bytes per pixel, top row first
};

/// Returns the picture scaled to the largest size with the same aspect ratio that fits into max_width x
/// max_height (both at least 1), but never larger than the original. Each pixel is the mean of the original
/// pixels that it covers. `rgba`: 4 bytes per pixel, top row first, dense.
small_picture shrink(const std::byte* rgba, u32 width, u32 height, u32 max_width, u32 max_height) {
    small_picture p;
    if (rgba == nullptr || width == 0 || height == 0 || max_width == 0 || max_height == 0) return p;
    p.width = std::min(width, max_width);
    p.height = static_cast<u32>(std::max<u64>(1, u64{height} * p.width / width));
    if (p.height > max_height) {
        p.height = max_height;
        p.width = static_cast<u32>(std::clamp<u64>(u64{width} * p.height / height, 1, width));
    }
    p.height = std::min(p.height, height);
    p.rgb.reserve(std::size_t{p.width} * p.height * 3);
    for (u32 y = 0; y < p.height; ++y) {
        const u64 y0 = u64{y} * height / p.height, y1 = std::max(y0 + 1, u64{y + 1} * height / p.height);
        for (u32 x = 0; x < p.width; ++x) {
            const u64 x0 = u64{x} * width / p.width, x1 = std::max(x0 + 1, u64{x + 1} * width / p.width);
            u64 sum[3] = {0, 0, 0};
            for (u64 v = y0; v < y1; ++v)
                for (u64 u = x0; u < x1; ++u)
                    for (std::size_t c = 0; c < 3; ++c)
                        sum[c] += std::to_integer<u64>(rgba[(v * width + u) * 4 + c]);
            for (const u64 s : sum) p.rgb += static_cast<char>(s / ((y1 - y0) * (x1 - x0)));
        }
    }
    return p;
}

/// Returns the text that is sent with a picture: the scale of its values, and the metadata of its frame.
std::string words_of(const viewer::shown_picture& p) {
    const std::string carried = viewer::line_of(p.carried);
    if (!p.scale.has_ends()) return carried;
    const std::string beyond = viewer::beyond_text(p.scale);
    return fmt::format("{}: {} to {}{}{}{}{}", viewer::name_of(p), viewer::scale_text(p.scale.low),
                       viewer::scale_text(p.scale.high), beyond.empty() ? "" : ", ", beyond,
                       carried.empty() ? "" : " · ", carried);
}

/// Takes the newest picture. Returns true if there is a picture, whether it is the present one or an older
/// one.
bool take_newest(viewer::tap& t, bool& have) {
    t.refresh();
    for (const u64 until = now_ns() + patience_ns; now_ns() < until; ::usleep(2'000))
        if (t.poll()) return have = true;
    return have;
}

int serve(const std::string& folder, const std::string& run_id, const std::string& stage) {
    const shm::segment run = shm::segment::attach(run_id);
    shm::guard_pages(run.block(), {});  // the tap makes those pages writable that contain the words of a
                                        // reader
    viewer::tap t(run.block(), run::control_socket(folder), {viewer::plane_from_text(stage)}, {});  // no GL
    bool have = false;
    for (;;) {
        shm::message m;
        const shm::receive_status got = shm::receive_message(socket_fd, m, 60 * ns_per_s);
        if (got == shm::receive_status::would_block) continue;
        if (got != shm::receive_status::ok) return exit_code::ok;
        u32 width = 0, height = 0;
        if (std::sscanf(m.text.c_str(), "%u %u", &width, &height) != 2 || width == 0 || height == 0 ||
            width > most_pixels / height)
            throw config_error("the request can't be read: check that both programs have the same version");
        std::string answer = "none";
        if (take_newest(t, have)) {
            const small_picture p = shrink(t.pixels(), t.width(), t.height(), width, height);
            answer = fmt::format("{} {} {}\t{}\n", p.width, p.height, t.ring_sequence(),
                                 words_of(t.shown().front())) +
                     p.rgb;
        }
        if (!shm::send_message(socket_fd, answer, {}, patience_ns)) return exit_code::ok;
    }
}

}  // namespace

int main(int argc, char** argv) {
    viewer::stay_outside_mps();
    if (argc < 3 || argc > 4) {
        std::fprintf(stderr, "carousel-peek is started by `carousel top --image`; see its help\n");
        return exit_code::usage;
    }
    std::signal(SIGPIPE, SIG_IGN);
    try {
        return serve(argv[1], argv[2], argc > 3 ? argv[3] : "");
    } catch (const error& e) {
        shm::send_message(socket_fd, std::string("error: ") + e.what());
        return e.code();
    } catch (const std::exception& e) {
        shm::send_message(socket_fd, std::string("error: ") + e.what());
        return exit_code::stage_exception;
    }
}
