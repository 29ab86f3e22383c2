#include "stages/encode/ffmpeg_choice.hpp"

extern "C" {
#include <libavutil/pixdesc.h>
}
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/cgroup.hpp"
#include "core/errors.hpp"

namespace carousel::stages::ffmpeg {
namespace {

struct codec_row {
    std::string_view codec;
    std::vector<const char*> encoders;  ///< in the order of preference
};
const codec_row codecs[] = {{"h264", {"libx264", "libopenh264"}},
                            {"hevc", {"libx265"}},
                            {"av1", {"libaom-av1", "libsvtav1"}},
                            {"vp9", {"libvpx-vp9"}},
                            {"ffv1", {"ffv1"}}};

/// The options by which an encoder returns each picture at once.
struct encoder_row {
    std::string_view encoder;
    const char* preset_key;  ///< the option for settings.preset
    const char* preset;
    const char* quality_key;  ///< the option for settings.quality; null: none
    i64 quality;
    std::vector<std::pair<const char*, const char*>> more;
};
const encoder_row encoders[] = {
    {"libx264", "preset", "veryfast", "crf", 18, {{"tune", "zerolatency"}, {"forced-idr", "1"}}},
    {"libx264rgb", "preset", "veryfast", "crf", 18, {{"tune", "zerolatency"}, {"forced-idr", "1"}}},
    {"libx265",
     "preset",
     "ultrafast",
     "crf",
     22,
     {{"tune", "zerolatency"}, {"forced-idr", "1"}, {"x265-params", "log-level=error:open-gop=0"}}},
    {"libvpx-vp9",
     "cpu-used",
     "8",
     "crf",
     28,
     {{"deadline", "realtime"}, {"lag-in-frames", "0"}, {"auto-alt-ref", "0"}, {"row-mt", "1"}}},
    {"libaom-av1",
     "cpu-used",
     "8",
     "crf",
     30,
     {{"usage", "realtime"}, {"lag-in-frames", "0"}, {"row-mt", "1"}}},
    {"libsvtav1", "preset", "10", "crf", 30, {{"svtav1-params", "pred-struct=1:lookahead=0"}}},
    {"ffv1", nullptr, nullptr, nullptr, 0, {{"level", "3"}, {"slicecrc", "1"}}},
    {"h264_nvenc",
     "preset",
     "p4",
     "cq",
     20,
     {{"tune", "ull"}, {"zerolatency", "1"}, {"delay", "0"}, {"forced-idr", "1"}, {"rc-lookahead", "0"}}},
    {"hevc_nvenc",
     "preset",
     "p4",
     "cq",
     22,
     {{"tune", "ull"}, {"zerolatency", "1"}, {"delay", "0"}, {"forced-idr", "1"}, {"rc-lookahead", "0"}}},
    {"av1_nvenc",
     "preset",
     "p4",
     "cq",
     28,
     {{"tune", "ull"}, {"zerolatency", "1"}, {"delay", "0"}, {"forced-idr", "1"}, {"rc-lookahead", "0"}}},
};

std::vector<AVPixelFormat> formats_of(const AVCodec& encoder) {
    std::vector<AVPixelFormat> out;
    if (encoder.pix_fmts == nullptr) return out;
    for (const AVPixelFormat* at = encoder.pix_fmts; *at != AV_PIX_FMT_NONE; ++at) {
        const AVPixFmtDescriptor* d = av_pix_fmt_desc_get(*at);
        if (d != nullptr && (d->flags & AV_PIX_FMT_FLAG_HWACCEL) == 0) out.push_back(*at);
    }
    return out;
}

/// The slices of one picture are encoded concurrently. Each slice makes the file slightly larger, and more
/// than eight slices make the encoder hardly faster.
int slice_threads() { return std::clamp(static_cast<int>(usable_cores()), 1, 8); }

}  // namespace

const AVCodec& choose_encoder(const encode_settings& with) {
    const auto* row = std::find_if(std::begin(codecs), std::end(codecs),
                                   [&](const auto& r) { return r.codec == with.codec; });
    if (!with.codec.empty() && row == std::end(codecs))
        throw config_error(fmt::format("codec = \"{}\": expected h264, hevc, av1, vp9 or ffv1", with.codec));
    if (!with.encoder.empty()) {
        const AVCodec* found = avcodec_find_encoder_by_name(with.encoder.c_str());
        if (found == nullptr || found->type != AVMEDIA_TYPE_VIDEO)
            throw config_error(
                fmt::format("encoder = \"{}\": ffmpeg's libraries here have no such video encoder (`ffmpeg "
                            "-encoders` lists them)",
                            with.encoder));
        if (!with.codec.empty() && with.codec != avcodec_get_name(found->id))
            throw config_error(
                fmt::format("encoder = \"{}\" makes {}, but codec = \"{}\"; remove one of the keys",
                            with.encoder, avcodec_get_name(found->id), with.codec));
        return *found;
    }
    std::vector<const char*> names = row == std::end(codecs) ? codecs[0].encoders : row->encoders;
    if (with.codec.empty()) names.push_back("mpeg4");
    for (const char* name : names)
        if (const AVCodec* found = avcodec_find_encoder_by_name(name)) return *found;
    throw config_error(fmt::format(
        "codec = \"{}\": ffmpeg's libraries here have no encoder for it ({}); choose another codec, or "
        "libraries with one of these encoders",
        with.codec.empty() ? "h264" : with.codec, fmt::join(names, ", ")));
}

AVPixelFormat choose_pixels(const encode_settings& with, const AVCodec& encoder) {
    const std::vector<AVPixelFormat> all = formats_of(encoder);
    const auto has = [&](AVPixelFormat f) { return std::find(all.begin(), all.end(), f) != all.end(); };
    if (all.empty())
        throw config_error(fmt::format(
            "encoder {} takes frames of its own device only, which are not supported here", encoder.name));
    if (!with.pixel_format.empty()) {
        const AVPixelFormat chosen = av_get_pix_fmt(with.pixel_format.c_str());
        if (chosen != AV_PIX_FMT_NONE && has(chosen)) return chosen;
        std::vector<std::string> names;
        for (const AVPixelFormat f : all) names.emplace_back(av_get_pix_fmt_name(f));
        throw config_error(fmt::format("pixel_format = \"{}\": the encoder {} supports {}", with.pixel_format,
                                       encoder.name, fmt::join(names, ", ")));
    }
    const std::string_view name = encoder.name;
    if (encoder.id == AV_CODEC_ID_FFV1) {
        const AVPixelFormat lossless = with.pixels == ring::pixel_format::rgba8    ? AV_PIX_FMT_RGB32
                                       : with.pixels == ring::pixel_format::gray8  ? AV_PIX_FMT_GRAY8
                                       : with.pixels == ring::pixel_format::rgba16 ? AV_PIX_FMT_GBRAP16
                                                                                   : AV_PIX_FMT_YUV420P;
        if (has(lossless)) return lossless;
    }
    // Colour at half resolution (4:2:0) needs even sizes.
    const bool even = with.width % 2 == 0 && with.height % 2 == 0;
    if (!even && (name == "libx264" || name == "libx265")) return AV_PIX_FMT_YUV444P;
    if (with.pixels == ring::pixel_format::nv12 && has(AV_PIX_FMT_NV12)) return AV_PIX_FMT_NV12;
    return has(AV_PIX_FMT_YUV420P) ? AV_PIX_FMT_YUV420P : all.front();
}

void add_defaults(media::options& to, const encode_settings& with, AVCodecContext& context) {
    const std::string_view name = context.codec->name;
    context.gop_size = static_cast<int>(with.gop);
    context.max_b_frames = 0;
    context.thread_count = slice_threads();
    context.thread_type = FF_THREAD_SLICE;
    if (name == "libx265") context.thread_count = 1;  // frames at a time; all cores work on one frame
    const auto* row = std::find_if(std::begin(encoders), std::end(encoders),
                                   [&](const auto& r) { return r.encoder == name; });
    const bool known = row != std::end(encoders);
    if (context.codec_id == AV_CODEC_ID_FFV1) context.gop_size = 1;  // each frame can be decoded alone
    if (known)
        for (const auto& [key, value] : row->more) to.set(key, value);
    if (known && row->preset_key != nullptr)
        to.set(row->preset_key, with.preset.empty() ? row->preset : with.preset);
    if ((!known || row->preset_key == nullptr) && !with.preset.empty()) {
        if (known)
            throw config_error(
                fmt::format("preset = \"{}\": the encoder {} has no presets", with.preset, name));
        to.set("preset", with.preset);
    }
    if (with.bitrate > 0) {
        context.bit_rate = static_cast<i64>(with.bitrate);
    } else if (known && row->quality_key != nullptr) {
        to.set(row->quality_key, std::to_string(with.quality.value_or(row->quality)));
    } else if (with.quality) {
        throw config_error(fmt::format(
            "quality = {}: the encoder {} has no such scale; use bitrate or options", *with.quality, name));
    }
}

}  // namespace carousel::stages::ffmpeg
