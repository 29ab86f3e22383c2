#include "stages/media/ffmpeg.hpp"

extern "C" {
#include <libavutil/opt.h>
}
#include <fmt/format.h>

#include <cstdarg>
#include <cstdio>
#include <new>
#include <utility>

#include "core/errors.hpp"

namespace carousel::stages::media {
namespace {

// A decoder logs from its own threads, too, but its slice threads do so only while the calling thread waits.
std::string& last_message() {
    thread_local std::string text;
    return text;
}

void collect(void* source, int level, const char* format, va_list arguments) {
    if (level > AV_LOG_ERROR) return;
    char line[512];
    int prefix = 1;
    av_log_format_line2(source, level, format, arguments, line, sizeof line, &prefix);
    std::string text(line);
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
        text.pop_back();
    // "[h264 @ 0x55d0] text": the address means nothing to a reader
    const std::size_t at = text.find(" @ 0x"), end = text.find(']');
    if (at != std::string::npos && end != std::string::npos && at < end) text.erase(at, end - at);
    if (!text.empty()) last_message() = text;
}

}  // namespace

std::string error_text(int result) {
    char text[AV_ERROR_MAX_STRING_SIZE] = {};
    av_strerror(result, text, sizeof text);
    return text;
}

std::string plain_text(std::string_view text, std::size_t most) {
    std::string out;
    for (const char c : text.substr(0, most)) out += c >= ' ' && c <= '~' ? c : '?';
    return out;
}

options::options(const std::map<std::string, std::string>& values) {
    for (const auto& [name, value] : values) set(name.c_str(), value);
}

std::string options::left() const {
    std::string names;
    for (const AVDictionaryEntry* e = nullptr;
         (e = av_dict_get(all_, "", e, AV_DICT_IGNORE_SUFFIX)) != nullptr;)
        names += (names.empty() ? "" : ", ") + std::string(e->key);
    return names;
}

AVPixelFormat pixel_format_of(ring::pixel_format pixels) noexcept {
    switch (pixels) {
        case ring::pixel_format::rgba8:
            return AV_PIX_FMT_RGBA;
        case ring::pixel_format::rgba16:
            return AV_PIX_FMT_RGBA64LE;
        case ring::pixel_format::gray8:
            return AV_PIX_FMT_GRAY8;
        case ring::pixel_format::nv12:
            return AV_PIX_FMT_NV12;
    }
    return AV_PIX_FMT_NONE;
}

ring::yuv_colours colours_of(AVColorSpace space, AVColorRange range, AVPixelFormat pixels,
                             u32 height) noexcept {
    ring::yuv_colours out = ring::usual_colours(height);
    switch (space) {
        case AVCOL_SPC_BT709:
            out.matrix = 709;
            break;
        case AVCOL_SPC_BT470BG:
        case AVCOL_SPC_SMPTE170M:
        case AVCOL_SPC_FCC:
        case AVCOL_SPC_SMPTE240M:
            out.matrix = 601;
            break;
        case AVCOL_SPC_BT2020_NCL:
        case AVCOL_SPC_BT2020_CL:
            out.matrix = 2020;
            break;
        default:
            break;
    }
    const AVPixFmtDescriptor* const about = av_pix_fmt_desc_get(pixels);
    const bool jpeg = about != nullptr && std::string_view(about->name).substr(0, 4) == "yuvj";
    out.full_range = range == AVCOL_RANGE_JPEG || (range == AVCOL_RANGE_UNSPECIFIED && jpeg);
    return out;
}

AVColorSpace space_of(const ring::yuv_colours& colours) noexcept {
    return colours.matrix == 601    ? AVCOL_SPC_SMPTE170M
           : colours.matrix == 2020 ? AVCOL_SPC_BT2020_NCL
                                    : AVCOL_SPC_BT709;
}

AVColorPrimaries primaries_of(const ring::yuv_colours& colours) noexcept {
    return colours.matrix == 601    ? AVCOL_PRI_SMPTE170M
           : colours.matrix == 2020 ? AVCOL_PRI_BT2020
                                    : AVCOL_PRI_BT709;
}

AVColorRange range_of(const ring::yuv_colours& colours) noexcept {
    return colours.full_range ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
}

namespace {

const int* coefficients_of(const picture_layout& side) {
    return sws_getCoefficients(side.colours.matrix == 601    ? SWS_CS_ITU601
                               : side.colours.matrix == 2020 ? SWS_CS_BT2020
                                                             : SWS_CS_ITU709);
}

bool is_yuv(AVPixelFormat pixels) {
    const AVPixFmtDescriptor* const about = av_pix_fmt_desc_get(pixels);
    return about != nullptr && (about->flags & AV_PIX_FMT_FLAG_RGB) == 0 && about->nb_components >= 3;
}

}  // namespace

// Between YUV formats that differ only in their matrix, libswscale converts the matrix by itself. The ranges
// are set before sws_init_context(), which otherwise chooses a function that ignores them for some pairs of
// formats of equal size (yuv420p to NV12).
void converter::prepare(const picture_layout& from, const picture_layout& to) {
    if (sws_ && from == from_ && to == to_) return;
    const int full_from = !is_yuv(from.pixels) || from.colours.full_range ? 1 : 0;
    const int full_to = !is_yuv(to.pixels) || to.colours.full_range ? 1 : 0;
    constexpr int flags = SWS_BICUBIC | SWS_ACCURATE_RND | SWS_BITEXACT | SWS_FULL_CHR_H_INT;
    sws_.reset(sws_alloc_context());
    if (!sws_) throw std::bad_alloc();
    bool sound = true;
    for (const auto& [name, value] : {std::pair("srcw", i64{from.width}),
                                      {"srch", i64{from.height}},
                                      {"src_format", i64{from.pixels}},
                                      {"dstw", i64{to.width}},
                                      {"dsth", i64{to.height}},
                                      {"dst_format", i64{to.pixels}},
                                      {"src_range", i64{full_from}},
                                      {"dst_range", i64{full_to}},
                                      {"sws_flags", i64{flags}}})
        sound = sound && av_opt_set_int(sws_.get(), name, value, 0) >= 0;
    sound = sound && sws_init_context(sws_.get(), nullptr, nullptr) >= 0;
    // Fails between formats that have no colours to convert (grey to grey).
    const bool coloured = is_yuv(from.pixels) || is_yuv(to.pixels);
    const int result = sound ? sws_setColorspaceDetails(sws_.get(), coefficients_of(from), full_from,
                                                        coefficients_of(to), full_to, 0, 1 << 16, 1 << 16)
                             : 0;
    if (!sound || (result < 0 && coloured)) {
        sws_.reset();
        throw config_error(fmt::format("FFmpeg cannot convert pictures of {} ({} x {}) to {} ({} x {})",
                                       av_get_pix_fmt_name(from.pixels), from.width, from.height,
                                       av_get_pix_fmt_name(to.pixels), to.width, to.height));
    }
    from_ = from;
    to_ = to;
}

void converter::convert(const u8* const* from, const int* from_strides, u8* const* to,
                        const int* to_strides) {
    sws_scale(sws_.get(), from, from_strides, 0, static_cast<int>(from_.height), to, to_strides);
}

void collect_messages() { av_log_set_callback(collect); }

std::string take_message() { return std::exchange(last_message(), {}); }

}  // namespace carousel::stages::media
