#include "stages/encode/encode.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/output_file.hpp"

namespace carousel::stages {
namespace {

constexpr i64 most_bits = 10'000'000'000, most_segments = 1'000'000, most_gop = 1'000'000;
constexpr f64 default_fps = 30;

std::string url_of(const settings& s) {
    const std::string url = s.text("url", ""), out = s.text("out", "");
    if (!url.empty() && !out.empty())
        throw settings_error("out", "url and out mean the same: remove one of the keys");
    if (url.empty() && out.empty())
        throw settings_error("url",
                             "the key url is missing: name a file (out.mp4, out.mkv, hls/out.m3u8) or a URL");
    return url.empty() ? out : url;
}

bool is_frames(const settings& s) {
    try {
        return s.text("fps", "") == "frames";
    } catch (const settings_error&) {
        return false;  // a number
    }
}

ring::image_description require_picture(const configuration& with) {
    const input_description& input = require_one_input(with, "a picture");
    if (const auto found = ring::image_in(input.format)) return *found;
    throw config_error(
        fmt::format("stage \"{}\" encodes pictures (rgba8, rgba16, gray8, nv12), but stage \"{}\" writes {}",
                    with.stage, input.stage, input.format.describe()));
}

/// True if a program outside takes the output: a receiver that ends or pauses is not the fault of a frame.
bool has_receiver(const encode_settings& e) {
    if (e.network || e.url == "pipe:1") return true;
    const std::optional<output_target> to = find_output(e.url);
    return to && !to->is_file;
}

/// A rate, or "frames".
void read_times(encode_settings& to, const configuration& with) {
    const f64 otherwise = with.fps > 0 ? with.fps : default_fps;
    to.fps = otherwise;
    if (!with.settings->has("fps")) {
        (void)with.settings->number("fps", otherwise, 0.01, 1000.0);
        return;
    }
    try {
        to.fps = with.settings->number("fps", otherwise, 0.01, 1000.0);
        return;
    } catch (const settings_error&) {
        if (!is_frames(*with.settings)) throw;
    }
    to.own_times = true;
}

}  // namespace

description encode::configure(const configuration& with) {
    name_ = with.stage;
    const ring::image_description picture = require_picture(with);
    const settings& s = *with.settings;
    encode_settings e;
    e.url = url_of(s);
    e.pixels = picture.pixels;
    e.colours = picture.colours;
    e.width = picture.width;
    e.height = picture.height;
    set_container(e, s.text("format", ""));
    e.codec = s.choice("codec", "h264", {"h264", "hevc", "av1", "vp9", "ffv1"});
    e.encoder = s.text("encoder", "");
    if (!e.encoder.empty() && !s.has("codec")) e.codec.clear();
    e.bitrate = static_cast<u64>(s.integer("bitrate", 0, 0, most_bits));
    const bool with_quality = s.has("quality");
    const i64 quality = s.integer("quality", 0, 0, 255);
    if (with_quality) e.quality = quality;
    if (with_quality && e.bitrate > 0)
        throw settings_error("quality", "quality and bitrate exclude each other: remove one of the keys");
    e.preset = s.text("preset", "");
    e.gop = static_cast<u32>(s.integer("gop", 60, 1, most_gop));
    e.pixel_format = s.text("pixel_format", "");
    e.options = s.texts("options");
    e.segment_s = s.number("segment_s", 2.0, 0.01, 3600.0);
    e.keep = static_cast<u32>(s.integer("keep", 0, 0, most_segments));
    e.timeout_s = s.number("timeout_s", 10.0, 0.1, 3600.0);
    e.on_wait = [this] {
        if (current_ != nullptr) current_->wait_for_link(true);
    };
    hashes_ = s.flag("hash", false);
    read_times(e, with);
    if (e.own_times && e.format == container::hls)
        throw settings_error("fps",
                             "fps = \"frames\" is not possible with HLS, whose segments have a fixed number "
                             "of frames: set a rate");
    check_encoder(e);
    settings_ = std::move(e);
    planes_.clear();
    picture_bytes_ = 0;
    const frame_format format = ring::image_format_of(picture.pixels, picture.width, picture.height);
    for (const ring::plane& p : format.planes) {
        planes_.push_back({p.name, p.bytes(), picture_bytes_});
        picture_bytes_ += p.bytes();
    }
    description d;
    d.forwards_frames = has_receiver(settings_);
    return d;
}

void encode::prepare(environment& env) {
    if (env.instance() > 0)
        throw config_error("only one process can write an encoded output: give this stage one instance");
    encode_settings e = settings_;
    if (!e.network && std::filesystem::path(e.url).is_relative())
        e.url = (std::filesystem::path(env.output_directory()) / e.url).string();
    output_ = std::make_unique<encoded_output>(e, env.runtime_directory() + "/encode-" + name_);
    if (output_->repeats_frames())
        log::info("{} is written at least once: a frame during which this process is killed is sent again",
                  e.url);
    if (hashes_) hasher_ = std::make_unique<plane_hasher>(env);
    lanes_.clear();
    for (u32 lane = 0; lane < env.in_flight(); ++lane)
        lanes_.push_back(env.context().allocate_host(picture_bytes_));
}

void encode::process(frame& f) {
    if (hasher_) hasher_->enqueue(f, planes_.front().name);
    std::byte* const to = lanes_[f.lane()]->data();
    for (const plane& p : planes_) f.queue().copy(to + p.at, f.input().bytes(p.name).data(), p.bytes);
}

void encode::finish(frame& f) {
    if (hasher_) hasher_->set_hash(f);
    if (!f.is_owned()) return;
    const std::byte* const from = lanes_[f.lane()]->host_data();
    picture_planes picture;
    for (std::size_t k = 0; k < planes_.size(); ++k) picture.at[k] = from + planes_[k].at;
    current_ = &f;
    output_->write(f.frame_number(), picture, static_cast<u64>(f.time_s() * static_cast<f64>(ns_per_s)));
    current_ = nullptr;
}

encode::~encode() {
    if (!output_) return;
    current_ = nullptr;  // set if finish() has failed
    try {
        output_->close();
    } catch (const std::exception& e) {
        log::warning("{}: ending the output: {}", name_, e.what());
    }
}

}  // namespace carousel::stages
