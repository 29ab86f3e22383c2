#include "stages/video/frame_decoder.hpp"

extern "C" {
#include <libavutil/imgutils.h>
}
#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace carousel::stages::video {
namespace {

/// A decoder that reports only errors, one after the other, is not called again for this packet.
constexpr int most_failures_per_packet = 64;

bool is_one_to_one(const AVCodecContext& c) {
    switch (c.codec_id) {
        case AV_CODEC_ID_H264:
        case AV_CODEC_ID_HEVC:
        case AV_CODEC_ID_MPEG2VIDEO:
            return c.field_order == AV_FIELD_PROGRESSIVE || c.field_order == AV_FIELD_UNKNOWN;
        case AV_CODEC_ID_VP8:
        case AV_CODEC_ID_VP9:
        case AV_CODEC_ID_AV1:
            return false;
        default: {
            // other codecs: only those of which each picture stands alone
            const AVCodecDescriptor* const about = avcodec_descriptor_get(c.codec_id);
            return about != nullptr && (about->props & AV_CODEC_PROP_INTRA_ONLY) != 0;
        }
    }
}

}  // namespace

packet_id id_of(const AVPacket& p) noexcept {
    return {p.dts != AV_NOPTS_VALUE ? p.dts : p.pts, p.pos, static_cast<u32>(p.size)};
}

u64 hash_of(const AVFrame& picture) {
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    const auto pixels = static_cast<AVPixelFormat>(picture.format);
    const AVPixFmtDescriptor* const about = av_pix_fmt_desc_get(pixels);
    const int planes = av_pix_fmt_count_planes(pixels);
    for (int k = 0; k < planes && about != nullptr; ++k) {
        const int row_bytes = av_image_get_linesize(pixels, picture.width, k);
        const bool chroma = k == 1 || k == 2;
        const int rows = chroma ? AV_CEIL_RSHIFT(picture.height, about->log2_chroma_h) : picture.height;
        for (int row = 0; row < rows && row_bytes > 0; ++row)
            XXH3_64bits_update(&state, picture.data[k] + std::ptrdiff_t{row} * picture.linesize[k],
                               static_cast<std::size_t>(row_bytes));
    }
    return XXH3_64bits_digest(&state);
}

frame_decoder::frame_decoder(media::owner<AVCodecContext> codec)
    : codec_(std::move(codec)), one_to_one_(is_one_to_one(*codec_)) {}

void frame_decoder::restart() {
    avcodec_flush_buffers(codec_.get());
    ready_.clear();
    pending_.clear();
    lowest_ = lowest_missing_ = last_ = INT64_MIN;
}

void frame_decoder::renew() { avcodec_flush_buffers(codec_.get()); }

void frame_decoder::decode(const AVPacket& p) {
    sent unnamed;
    sent* about = &unnamed;
    if (p.pts == AV_NOPTS_VALUE)
        irregular_ = true;
    else
        about = &pending_[p.pts];
    about->dts = p.dts;
    about->key = (p.flags & AV_PKT_FLAG_KEY) != 0;
    about->shown = (p.flags & AV_PKT_FLAG_DISCARD) == 0;
    std::string failure;
    (void)media::take_message();
    const int result = avcodec_send_packet(codec_.get(), &p);
    if (result == AVERROR(ENOMEM)) throw std::bad_alloc();
    if (result < 0) {
        failure = media::take_message();
        if (failure.empty()) failure = media::error_text(result);
    }
    // `about` may be removed by the picture that it leads to
    if (p.pts != AV_NOPTS_VALUE) about->failure = failure;
    receive(&failure);
    if (const auto at = pending_.find(p.pts); at != pending_.end() && p.pts != AV_NOPTS_VALUE)
        at->second.failure = failure;
}

void frame_decoder::receive(std::string* failure) {
    for (int failures = 0; failures < most_failures_per_packet;) {
        media::owner<AVFrame> picture(av_frame_alloc());
        if (!picture) throw std::bad_alloc();
        const int result = avcodec_receive_frame(codec_.get(), picture.get());
        if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return;
        if (result == AVERROR(ENOMEM)) throw std::bad_alloc();
        if (result >= 0) {
            output(std::move(picture));
            continue;
        }
        ++failures;
        if (failure == nullptr) continue;
        *failure = media::take_message();
        if (failure->empty()) *failure = media::error_text(result);
    }
}

void frame_decoder::drain() {
    (void)avcodec_send_packet(codec_.get(), nullptr);
    receive(nullptr);
}

void frame_decoder::skip(const AVPacket& p, const std::string& reason) {
    if (p.pts == AV_NOPTS_VALUE) {
        irregular_ = true;
        return;
    }
    pending_[p.pts] = {p.dts, (p.flags & AV_PKT_FLAG_KEY) != 0, (p.flags & AV_PKT_FLAG_DISCARD) == 0, reason};
}

void frame_decoder::output(media::owner<AVFrame> picture) {
    const i64 pts = picture->pts != AV_NOPTS_VALUE ? picture->pts : picture->best_effort_timestamp;
    if (picture->pts == AV_NOPTS_VALUE) irregular_ = true;
    decoded_frame out;
    const auto of = pending_.find(pts);
    if (of != pending_.end()) {
        out.entry.dts = of->second.dts;
        out.entry.key = of->second.key;
        pending_.erase(of);
        report_missing(pts);
    } else {
        irregular_ = true;  // packets and pictures have different times
    }
    if (pts < lowest_) return;
    if (pts <= last_) irregular_ = true;
    last_ = std::max(last_, pts);
    out.entry.pts = pts;
    out.entry.hash = hash_of(*picture);
    out.picture = std::move(picture);
    ready_.push_back(std::move(out));
}

void frame_decoder::report_missing(i64 below) {
    while (!pending_.empty() && pending_.begin()->first < below) {
        const auto node = pending_.extract(pending_.begin());
        const i64 pts = node.key();
        const sent& p = node.mapped();
        const bool missing = p.shown && (!p.failure.empty() || (one_to_one_ && !irregular_));
        if (!missing || pts < lowest_ || pts < lowest_missing_ || pts <= last_) continue;
        last_ = pts;
        decoded_frame out;
        out.entry = {pts, p.dts, 0, false, true};
        out.reason = !p.failure.empty() ? p.failure : "the decoder output no picture for its packet";
        ready_.push_back(std::move(out));
    }
}

void frame_decoder::finish() { report_missing(INT64_MAX); }

decoded_frame frame_decoder::take_frame() {
    decoded_frame out = std::move(ready_.front());
    ready_.pop_front();
    return out;
}

}  // namespace carousel::stages::video
