// doctor: reports what this build supports, and what would add the missing parts. Programs and modules are
// next to carousel.

#include <fmt/format.h>
#include <unistd.h>

#include "core/json.hpp"
#include "core/json_text.hpp"
#include "doctor/doctor.hpp"
#include "os/subprocess.hpp"
#include "spec/programs.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

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
            there ? "" : fmt::format("run apt-get install {} and build again", packages)};
}

constexpr const char* links = "links to other hosts";

}  // namespace

// Uses a program that is linked with UCX, because this one is not, and the search for devices may hang.
finding examine_links(const std::string& folder, u32 timeout_ms) {
    const std::string program = folder + "/carousel-send";
    const char* use = "carousel-send, carousel-receive and carousel-remote, over UCX";
    if (::access(program.c_str(), R_OK) != 0) return part(links, false, use, "libucx-dev libssl-dev");
    const subprocess_result r = run_subprocess({program, "--ucx"}, "", timeout_ms);
    const json j = parse_json_or_discard(r.output, json_channel::document);
    if (!r.succeeded() || !j.is_object() || !j.contains("version") || !j["version"].is_string())
        return {links, verdict::warn,
                fmt::format("{} --ucx: {}", program,
                            r.succeeded() ? "it does not report its UCX version" : r.ending(timeout_ms)),
                "links may not work: reinstall UCX (apt-get install --reinstall libucx0) and build again"};
    std::string set;
    const json& settings = j.contains("set") ? j["set"] : json::object();
    for (const auto& [name, value] : settings.items())
        set += fmt::format("{}{} {}", set.empty() ? "" : ", ", name,
                           !value.is_string()                 ? "by each link"
                           : value.get<std::string>().empty() ? "empty"
                                                              : value.get<std::string>());
    const json cuda = j.value("cuda", json());
    return {links, verdict::ok,
            fmt::format("built: {} {}; transport: tcp, or a link's `transports`; {}: set by these "
                        "programs; GPU frames are sent through page-locked memory, or with memory = "
                        "\"direct\" straight from GPU memory: {}",
                        use, j["version"].get<std::string>(), set,
                        !cuda.is_boolean() ? "can't determine whether this UCX supports CUDA"
                        : cuda.get<bool>()
                            ? "this UCX supports CUDA, as memory = \"direct\" requires"
                            : "this UCX does not support CUDA here, as memory = \"direct\" requires"),
            ""};
}

void examine_build(std::vector<finding>& all, const doctor_places& places) {
    const std::string folder = executable_folder();
    const auto there = [&](const char* file) { return ::access((folder + "/" + file).c_str(), R_OK) == 0; };
    all.push_back(part("films", there("libcarousel-film.so"), "--out film.mp4",
                       "libavcodec-dev libavformat-dev libavutil-dev libswscale-dev"));
    all.push_back(part("dashboard", there("carousel-web"), "--http, `carousel view`", "libturbojpeg0-dev"));
    all.push_back(part("viewer", there("carousel-viewer"), "a window that shows a run",
                       "libimgui-dev libglfw3-dev libepoxy-dev libegl-dev"));
    all.push_back(part("JPEG textures", with_jpeg, "textures of glTF files and texture = \"x.jpg\"",
                       "libturbojpeg0-dev"));
    all.push_back(part("compressed recordings", with_lz4 && with_zstd,
                       "record_compression = \"lz4\", \"zstd\"", "liblz4-dev libzstd-dev"));
    all.push_back(examine_links(folder, places.probe_timeout_ms));
}

}  // namespace carousel::supervisor
