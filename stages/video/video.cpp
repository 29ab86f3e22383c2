#include "stages/video/video.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <utility>

#include <carousel/cpu.hpp>
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"

namespace carousel::stages {
namespace {

using media::picture_layout;
using ring::pixel_format;

/// Time on the way to the first frame between two checks whether the process ends.
constexpr u64 catching_up_ns = 50 * ns_per_ms;

picture_layout layout_of(const AVFrame& picture) {
    const auto pixels = static_cast<AVPixelFormat>(picture.format);
    const auto height = static_cast<u32>(picture.height);
    return {pixels, static_cast<u32>(picture.width), height,
            media::colours_of(picture.colorspace, picture.color_range, pixels, height)};
}

std::optional<image_size> size_from(const std::string& text) {
    image_size out;
    const char *at = text.data(), *const end = text.data() + text.size();
    const auto width = std::from_chars(at, end, out.width);
    if (width.ec != std::errc() || width.ptr == end || *width.ptr != 'x') return std::nullopt;
    const auto height = std::from_chars(width.ptr + 1, end, out.height);
    if (height.ec != std::errc() || height.ptr != end) return std::nullopt;
    constexpr u32 most = 16384;
    if (out.width < 1 || out.height < 1 || out.width > most || out.height > most) return std::nullopt;
    return out;
}

/// Where indexes are kept between runs; "": nowhere.
std::string index_folder() {
    if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
        return fmt::format("{}/carousel/video", cache);
    if (const char* const home = std::getenv("HOME"); home != nullptr && *home == '/')
        return fmt::format("{}/.cache/carousel/video", home);
    return "";
}

i64 in_ns(i64 time, AVRational unit) { return av_rescale_q(time, unit, {1, static_cast<int>(ns_per_s)}); }

// In configure() neither a device nor a sender is opened, because another process may use it then.
void require_there(const video::address& where) {
    using video::address_kind;
    if (where.written.starts_with("pipe:"))
        throw settings_error(
            "url",
            fmt::format("url = \"{}\": a stage has no standard input; make a FIFO (mkfifo NAME), write to "
                        "it, and set url to its name",
                        where.written));
    if (where.kind != address_kind::device || ::access(where.url.c_str(), R_OK) == 0) return;
    throw settings_error("url", fmt::format("url = \"{}\": the device cannot be read: {}; check that it is "
                                            "connected, and that this user may read it",
                                            where.written, errno_text(errno)));
}

}  // namespace

description video_source::configure(const configuration& with) {
    require_no_inputs(with);
    media::collect_messages();
    name_ = with.stage;
    const settings& keys = *with.settings;
    const std::string url = keys.text("url", "");
    if (url.empty()) throw settings_error("url", "no video is named; expected e.g. url = \"clip.mp4\"");
    where_ = video::address_of(url, with.path(url));
    stream_ = static_cast<int>(keys.integer("stream", -1, -1, 1000));
    loop_ = keys.flag("loop", false);
    pace_ = recorded_pace(keys.number("rate", 0.0, 0.0, 1000.0));
    live_ = keys.flag("live", where_.is_live());
    if (!live_ && where_.is_live())
        throw settings_error("live",
                             fmt::format("live = false: {} can't be read again after a crash, so only its "
                                         "newest frames can be delivered; remove the key",
                                         url));
    const std::string pixels =
        keys.choice("pixel_format", "rgba", {"rgba", "rgba8", "rgba16", "gray8", "nv12"});
    pixels_ = pixels == "rgba" ? pixel_format::rgba8 : ring::pixel_format_named(pixels).value();
    ends_on_change_ = keys.choice("on_change", "scale", {"scale", "end"}) == "end";
    options_ = keys.texts("options");
    require_there(where_);
    read_size(with);
    description d;
    d.outputs = {format_};
    d.ends = !loop_;
    return d;
}

void video_source::read_size(const configuration& with) {
    const std::string text = with.settings->text("size", "");
    const std::optional<image_size> size = size_from(text);
    if (!text.empty() && !size)
        throw settings_error("size",
                             fmt::format("size = \"{}\": expected e.g. \"1280x720\", at most 16384", text));
    to_ = {media::pixel_format_of(pixels_), with.width, with.height, ring::usual_colours(with.height)};
    if (!live_) try {
            video::media_input in(where_, stream_, media::options(options_),
                                  where_.is_on_server() ? video::server_patience_s : 0);
            const AVCodecParameters& about = in.parameters();
            const media::owner<AVCodecContext> decoder = video::open_decoder(in, where_);
            to_.width = static_cast<u32>(about.width);
            to_.height = static_cast<u32>(about.height);
            to_.colours = media::colours_of(about.color_space, about.color_range,
                                            static_cast<AVPixelFormat>(about.format), to_.height);
            if (const media::owner<AVFrame> first = video::first_picture(in, *decoder)) {
                const picture_layout seen = layout_of(*first);
                to_.width = seen.width;
                to_.height = seen.height;
                to_.colours = seen.colours;
            }
            source_width_ = to_.width;
            source_height_ = to_.height;
        } catch (const config_error& e) {
            throw settings_error(std::string(e.what()).starts_with("options") ? "options" : "url", e.what());
        }
    if (size) {
        to_.width = size->width;
        to_.height = size->height;
    }
    if (pixels_ == pixel_format::nv12 && (to_.width % 2 != 0 || to_.height % 2 != 0))
        throw settings_error(
            text.empty() ? "pixel_format" : "size",
            fmt::format("pictures of {} x {} pixels can't be NV12: set size to even numbers, "
                        "or use another pixel_format",
                        to_.width, to_.height));
    format_ = ring::image_format_of(pixels_, to_.width, to_.height, to_.colours);
    (void)format_.lay_out();
}

void video_source::prepare(environment& env) {
    if (env.instance() > 0)
        throw config_error(fmt::format("stage \"{}\" reads a video in order: give it one instance", name_));
    env_ = &env;
    watch_ = std::make_unique<video::call_watch>(fmt::format("decoding {}", where_.written));
    if (env.context().kind() == device_kind::cpu) return;
    ring::frame_format format = format_;
    for (u32 lane = 0; lane < env.in_flight(); ++lane)
        lanes_.push_back(env.context().allocate_host(format.lay_out()));
}

// Opened when the first frame is due: a standby must neither take a device from the process that works, nor
// read that process's note.
void video_source::open_reader() {
    video::reader_setup with;
    with.where = where_;
    with.stream = stream_;
    with.options = media::options(options_);
    if (where_.kind == video::address_kind::file) {
        with.note_stem = fmt::format("{}/video-{}", env_->runtime_directory(), name_);
        with.index_path = with.note_stem + ".index";
        with.kept_index_path = index_folder();
    }
    with.epoch = env_->epoch();
    reader_ = std::make_unique<video::video_reader>(with);
}

u64 video_source::place_of(u64 frame_number) const {
    const std::optional<u64> total = reader_->total();
    return loop_ && total && *total > 0 ? frame_number % *total : frame_number;
}

// The way to the first frame that is not committed, which may take seconds, is done before process(), because
// it must not count as an attempt of a frame; that frame itself is decoded in process(). A thread does it, so
// that the supervisor finds this stage waiting for its source, and not stalled, while a disk does not
// respond.
bool video_source::ready(u64 ring_sequence, u64 done_below) {
    (void)done_below;
    if (live_) {
        if (!camera_)
            camera_ = std::make_unique<video::live_video>(where_, stream_, media::options(options_), loop_,
                                                          [this] { env_->wake(); });
        return camera_->has_frame() || camera_->has_ended();
    }
    if (catching_up_.valid()) {
        if (catching_up_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
        catching_up_.get();
    }
    if (reached_ == ring_sequence || (reader_ && reader_->is_at(place_of(ring_sequence)))) return true;
    catching_up_ = std::async(std::launch::async, [this, ring_sequence] { catch_up(ring_sequence); });
    return false;
}

void video_source::catch_up(u64 ring_sequence) {
    struct waker {
        environment* env;
        ~waker() { env->wake(); }  // also for an exception, which ready() throws again
    } const wakes{env_};
    for (bool reached = false; !reached && !stop_;) {
        const video::call_watch::scope watched(*watch_);
        if (!reader_) open_reader();
        reached = reader_->reach(place_of(ring_sequence), ring_sequence, catching_up_ns);
    }
    reached_ = ring_sequence;
}

// The wait is bounded: call_watch, which is destroyed later, ends the process if one call lasts too long.
video_source::~video_source() {
    stop_ = true;
    if (catching_up_.valid()) catching_up_.wait();
}

void video_source::process(frame& f) {
    if (live_) return process_live(f);
    process_file(f);
}

void video_source::process_file(frame& f) {
    if (!reader_) open_reader();
    const u64 place = place_of(f.frame_number());
    const video::decoded_frame* got = reader_->read(place, f.frame_number());
    if (got == nullptr && loop_) {
        const std::optional<u64> total = reader_->total();
        if (!total || *total == 0)
            throw error(exit_code::stage_exception, fmt::format("{} has no frames", where_.written));
        got = reader_->read(place_of(f.frame_number()), f.frame_number());
    }
    if (got == nullptr && loop_)
        throw error(exit_code::stage_exception,
                    fmt::format("{} cannot be read again for frame {}", where_.written, f.frame_number()));
    if (got == nullptr) return f.end_stream();
    const AVStream& stream = reader_->input().stream();
    const i64 begin = stream.start_time != AV_NOPTS_VALUE ? stream.start_time : 0;
    const i64 pts_ns = in_ns(got->entry.pts - begin, stream.time_base);
    const std::optional<u64> total = reader_->total();
    const u64 lap = loop_ && total ? f.frame_number() / *total : 0;
    f64 time_s = static_cast<f64>(pts_ns) / 1e9;
    if (lap > 0) time_s += static_cast<f64>(lap) * reader_->duration_s();
    const u64 created = reader_->input().creation_ns();
    f.stamp({.time_s = time_s,
             .capture_ns = created != 0 ? created + static_cast<u64>(std::max<i64>(pts_ns, 0)) : 0});
    f.metadata().set("pts_ns", pts_ns);
    if (!got->picture) {
        const std::string reason = got->reason.empty() ? "it is damaged" : got->reason;
        log::warning("frame {} is missing in {}: {}", f.frame_number(), where_.written, reason);
        f.metadata().set("missing", media::plain_text(reason, 200));
        return f.pass_tombstone();
    }
    if (has_changed(*got->picture)) return f.end_stream();
    pace_.wait_for(static_cast<u64>(time_s * 1e9) + 1);
    f.metadata().set("key_frame", got->entry.key);
    show(f, reader_->take_picture());
}

void video_source::process_live(frame& f) {
    std::optional<video::live_frame> got = camera_->take();
    if (!got || has_changed(*got->picture)) {
        if (got || camera_->has_ended()) return f.end_stream();
        throw error(exit_code::stage_exception,
                    fmt::format("frame {} was started, but there is no picture", f.frame_number()));
    }
    f.set_capture_ns(got->captured_ns);
    f.metadata().set("pts_ns", got->pts_ns);
    f.metadata().set("key_frame", got->key);
    f.metadata().set("dropped", got->dropped);
    show(f, std::move(got->picture));
}

bool video_source::has_changed(const AVFrame& picture) {
    const auto width = static_cast<u32>(picture.width), height = static_cast<u32>(picture.height);
    if (source_width_ == 0) {
        source_width_ = width;
        source_height_ = height;
    }
    if (!ends_on_change_ || (width == source_width_ && height == source_height_)) return false;
    log::info("the pictures of {} change from {} x {} to {} x {}: the stream ends", where_.written,
              source_width_, source_height_, width, height);
    return true;
}

// On the CPU, the queue's thread converts the picture into the slot, while this thread decodes the next one.
void video_source::show(frame& f, media::owner<AVFrame> picture) {
    if (picture->decode_error_flags != 0 || (picture->flags & AV_FRAME_FLAG_CORRUPT) != 0)
        f.metadata().set("damaged", true);
    const bool on_cpu = lanes_.empty();
    std::byte* const slot = on_cpu ? f.output().slot() : lanes_[f.lane()]->host_data();
    std::array<u8*, 4> planes{};
    std::array<int, 4> strides{};
    for (std::size_t k = 0; k < format_.planes.size(); ++k) {
        const ring::plane& p = format_.planes[k];
        planes[k] = reinterpret_cast<u8*>(slot + p.offset);
        strides[k] = static_cast<int>(p.bytes() / p.shape[0]);
    }
    const std::shared_ptr<AVFrame> from(std::move(picture));
    const auto convert = [from, planes, strides, to = to_, by = converter_] {
        by->prepare(layout_of(*from), to);
        by->convert(from->data, from->linesize, planes.data(), strides.data());
    };
    if (on_cpu) return cpu::enqueue(f, [convert](cpu::pool&) { convert(); });
    convert();
    const u64 begin = format_.planes.front().offset, bytes = lanes_[f.lane()]->bytes() - begin;
    f.queue().copy(f.output().slot() + begin, lanes_[f.lane()]->data() + begin, bytes);
}

}  // namespace carousel::stages
