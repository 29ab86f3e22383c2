#include "stages/encode/encoded_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string_view>

#include "core/errors.hpp"
#include "stages/encode/hls_folder.hpp"

namespace carousel::stages {
namespace {

struct named_container {
    std::string_view name;
    container is;
};
constexpr named_container names[] = {{"mp4", container::mp4},   {"mkv", container::matroska},
                                     {"hls", container::hls},   {"mpegts", container::mpegts},
                                     {"rtsp", container::rtsp}, {"flv", container::flv}};
constexpr std::string_view file_scheme = "file://";
constexpr named_container endings[] = {{".mp4", container::mp4},
                                       {".mkv", container::matroska},
                                       {".m3u8", container::hls},
                                       {".ts", container::mpegts}};
constexpr named_container schemes[] = {{"rtsp", container::rtsp},
                                       {"rtmp", container::flv},
                                       {"udp", container::mpegts},
                                       {"tcp", container::mpegts},
                                       {"srt", container::mpegts}};

/// `colon`: place of "://" in the URL. Throws config_error.
container container_of(const std::string& url, std::size_t colon, const std::string& name) {
    if (!name.empty()) {
        const auto* found =
            std::find_if(std::begin(names), std::end(names), [&](const auto& n) { return n.name == name; });
        if (found != std::end(names)) return found->is;
        throw config_error(fmt::format("format = \"{}\": expected mp4, mkv, hls, mpegts, rtsp or flv", name));
    }
    if (url == "pipe:1") return container::mpegts;  // for `carousel validate`; a run replaces it by a path
    if (colon != std::string::npos)
        for (const auto& [text, is] : schemes)
            if (url.starts_with(text)) return is;
    for (const auto& [ending, is] : endings)
        if (url.ends_with(ending)) return is;
    throw config_error(fmt::format(
        "\"{}\" does not determine a container; use a name that ends in .mp4, .mkv or .m3u8, a URL that "
        "begins with "
        "rtsp://, udp://, tcp://, srt:// or rtmp://, or the key format (mp4, mkv, hls, mpegts, rtsp, flv)",
        url));
}

hls_folder::rules hls_rules(const encode_settings& with) {
    const f64 gops = std::max(std::ceil(with.segment_s * with.fps / with.gop), 1.0);
    return {with.fps, static_cast<u64>(gops) * with.gop, with.keep};
}

std::unique_ptr<encoded_sink> make_sink(const encode_settings& with, const std::string& note,
                                        const std::vector<u8>& heading) {
    if (with.network) return nullptr;
    if (with.format == container::hls)
        return std::make_unique<hls_folder>(with.url, note, heading, hls_rules(with));
    return std::make_unique<encoded_file>(with.url, note, heading, with.format,
                                          receiver_wait{with.timeout_s, with.on_wait});
}

const encode_settings& with_folder(const encode_settings& with) {
    const std::filesystem::path folder = std::filesystem::path(with.url).parent_path();
    std::error_code failed;
    if (!with.network && !folder.empty()) std::filesystem::create_directories(folder, failed);
    if (failed)
        throw_output_error(folder.string(), failed.value(),
                           fmt::format("creating the folder {}: {}; choose a place that this user may write",
                                       folder.string(), errno_text(failed.value())));
    return with;
}

}  // namespace

void set_container(encode_settings& to, const std::string& name) {
    if (to.url.starts_with(file_scheme)) to.url.erase(0, file_scheme.size());
    const std::size_t colon = to.url.find("://");
    to.network = colon != std::string::npos;
    to.format = container_of(to.url, colon, name);
    // These containers are written for files, which a successor reads and continues.
    const bool continued =
        to.format == container::mp4 || to.format == container::matroska || to.format == container::hls;
    if (to.network && continued)
        throw config_error(
            fmt::format("url = \"{}\": {} cannot be sent over a network; use format = \"mpegts\"", to.url,
                        name_of(to.format)));
    if (!to.network && to.format == container::rtsp)
        throw config_error(fmt::format("url = \"{}\": rtsp needs a URL that begins with rtsp://", to.url));
}

encoded_output::encoded_output(const encode_settings& with, const std::string& note)
    : gop_(std::max(with.gop, 1U)),
      encoder_(make_encoder(with_folder(with))),
      sink_(make_sink(with, note, encoder_->heading())) {}

void encoded_output::write(u64 frame_number, const picture_planes& picture, u64 time_ns) {
    if (sink_ && sink_->contains(frame_number)) return;
    if (encoded_ != frame_number) {
        // Key frames are at the same places whenever the process was restarted.
        const bool key = !encoded_ || frame_number / gop_ != *encoded_ / gop_;
        frame_ = encoder_->encode(frame_number, time_ns, picture, key);
    }
    encoded_ = frame_number;
    if (sink_) sink_->append(frame_number, frame_);
}

void encoded_output::close() {
    encoder_->close();
    if (sink_) sink_->close();
}

}  // namespace carousel::stages
