// Used if the headers of libepoxy or EGL were missing at build time.
#include "bench/peer.hpp"
#include "core/errors.hpp"

namespace carousel::bench {

std::unique_ptr<peer> open_opengl(const peer_options&) {
    throw device_error(
        "--peer opengl: this carousel-bench was built without OpenGL; install libepoxy-dev and libegl-dev "
        "and build again");
}

}  // namespace carousel::bench
