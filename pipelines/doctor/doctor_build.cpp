// doctor: what this build can do, and what would add the rest. Programs and modules lie beside carousel.

#include <fmt/format.h>
#include <unistd.h>

#include "doctor/doctor.hpp"
#include "spec/own_programs.hpp"

namespace carousel::supervisor {
namespace {

#ifdef CAROUSEL_WITH_TURBOJPEG
constexpr bool with_jpeg = true;
#else
constexpr bool with_jpeg = false;
#endif
#ifdef CAROUSEL_WITH_LZ4
constexpr bool with_lz4 = true;
#else
constexpr bool with_lz4 = false;
#endif
#ifdef CAROUSEL_WITH_ZSTD
constexpr bool with_zstd = true;
#else
constexpr bool with_zstd = false;
#endif

finding part(const char* name, bool there, const char* use, const char* packages) {
    return {name, there ? verdict::ok : verdict::warn,
            fmt::format("{}: {}", there ? "built" : "not built", use),
            there ? "" : fmt::format("apt-get install {}, and build again", packages)};
}

}  // namespace

void examine_build(std::vector<finding>& all) {
    const auto there = [folder = executable_folder()](const char* file) {
        return ::access((folder + "/" + file).c_str(), R_OK) == 0;
    };
    all.push_back(part("films", there("libcarousel-film.so"), "--out film.mp4",
                       "libavcodec-dev libavformat-dev libavutil-dev libswscale-dev"));
    all.push_back(part("page", there("carousel-web"), "--http, `carousel view`", "libturbojpeg0-dev"));
    all.push_back(part("viewer", there("carousel-viewer"), "a window on a run",
                       "libimgui-dev libglfw3-dev libepoxy-dev libegl-dev"));
    all.push_back(part("JPEG textures", with_jpeg, "textures of glTF files and texture = \"x.jpg\"",
                       "libturbojpeg0-dev"));
    all.push_back(part("recordings, packed", with_lz4 && with_zstd, "record_compression = \"lz4\", \"zstd\"",
                       "liblz4-dev libzstd-dev"));
    all.push_back(part("links to other hosts", there("carousel-send"),
                       "carousel-send, carousel-receive, carousel-remote, by UCX", "libucx-dev libssl-dev"));
}

}  // namespace carousel::supervisor
