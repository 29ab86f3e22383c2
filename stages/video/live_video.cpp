#include "stages/video/live_video.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"

namespace carousel::stages::video {
namespace {

constexpr u32 patience_s = 10;  ///< time without data after which a sender counts as gone
constexpr u64 report_interval_ns = 10 * ns_per_s, first_pause_ns = 500 * ns_per_ms,
              longest_pause_ns = 5 * ns_per_s;
constexpr std::size_t most_packets_in_decoder = 128;

}  // namespace

live_video::live_video(const address& where, int stream, const media::options& options, bool reconnects,
                       std::function<void()> wake)
    : where_(where),
      stream_(stream),
      options_(options),
      reconnects_(reconnects),
      wake_(std::move(wake)),
      watch_(fmt::format("decoding {}", where.written)),
      thread_([this] { run(); }) {}

live_video::~live_video() {
    stop_ = true;
    {
        const std::lock_guard lock(mutex_);
        if (input_) input_->stop();
    }
    thread_.join();
    report_drops(true);
}

bool live_video::has_frame() {
    const std::lock_guard lock(mutex_);
    return newest_.has_value();
}

bool live_video::has_ended() {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw config_error(failure_);
    return ended_ && !newest_;
}

std::optional<live_frame> live_video::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(newest_, std::nullopt);
}

void live_video::pause(u64 ns) {
    for (const u64 until = now_ns() + ns; now_ns() < until && !stop_;)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

// A pipe may wait for its writer as long as it takes; a stream of the network or a device has a timeout.
bool live_video::open() {
    const u32 patience = where_.kind == address_kind::pipe ? 0 : patience_s;
    auto opened = std::make_unique<media_input>(where_, stream_, options_, patience);
    const std::lock_guard lock(mutex_);
    input_ = std::move(opened);
    was_open_ = true;
    return !stop_;
}

void live_video::run() {
    media::collect_messages();
    u64 wait_ns = first_pause_ns;
    while (!stop_) {
        std::string reason;
        try {
            if (!open()) break;
            wait_ns = first_pause_ns;
            reason = play();
            if (reason.empty() && !reconnects_) break;
        } catch (const input_error& e) {
            reason = e.what();
            // A device that has worked may return; one that never did is an error of the pipeline file.
            if (where_.kind != address_kind::network && !was_open_) return end(reason);
        } catch (const error& e) {  // a later attempt has the same error
            return end(e.what());
        }
        if (stop_) break;
        log::warning("{}: {}; trying again in {:.1f} s", where_.written,
                     reason.empty() ? "the input has ended" : reason, static_cast<f64>(wait_ns) / 1e9);
        pause(wait_ns);
        wait_ns = std::min(wait_ns * 2, longest_pause_ns);
    }
    end("");
}

void live_video::end(const std::string& failure) {
    {
        const std::lock_guard lock(mutex_);
        failure_ = failure;
        ended_ = true;
    }
    wake_();
}

std::string live_video::play() {
    const media::owner<AVCodecContext> decoder = open_decoder(*input_, where_);
    const media::owner<AVPacket> packet(av_packet_alloc());
    if (!packet) throw std::bad_alloc();
    arrived_.clear();
    for (;;) {
        const int result = input_->read(*packet);
        if (stop_) return "";
        if (result == AVERROR_EOF) break;
        if (result == AVERROR_EXIT) return fmt::format("no data for {} s", patience_s);
        if (result < 0) return media::error_text(result);
        if (packet->pts != AV_NOPTS_VALUE)
            arrived_[packet->pts] = {now_ns(), (packet->flags & AV_PKT_FLAG_KEY) != 0};
        if (arrived_.size() > most_packets_in_decoder) arrived_.erase(arrived_.begin());
        const call_watch::scope watched(watch_);
        (void)avcodec_send_packet(decoder.get(), packet.get());  // a damaged packet has no picture
        receive(*decoder);
    }
    const call_watch::scope watched(watch_);
    (void)avcodec_send_packet(decoder.get(), nullptr);
    receive(*decoder);
    return "";
}

void live_video::receive(AVCodecContext& decoder) {
    for (;;) {
        media::owner<AVFrame> picture(av_frame_alloc());
        if (!picture) throw std::bad_alloc();
        if (avcodec_receive_frame(&decoder, picture.get()) < 0) return;
        offer(std::move(picture));
    }
}

void live_video::offer(media::owner<AVFrame> picture) {
    live_frame f;
    const i64 pts = picture->best_effort_timestamp;
    const auto at = arrived_.find(pts);
    f.captured_ns = at != arrived_.end() ? at->second.first : now_ns();
    f.key = at != arrived_.end() ? at->second.second : picture->key_frame != 0;
    if (pts != AV_NOPTS_VALUE)
        f.pts_ns = av_rescale_q(pts, input_->stream().time_base, {1, static_cast<int>(ns_per_s)});
    f.picture = std::move(picture);
    {
        const std::lock_guard lock(mutex_);
        if (newest_) ++dropped_;
        f.dropped = dropped_;
        newest_ = std::move(f);
    }
    wake_();
    report_drops(false);
}

void live_video::report_drops(bool now) {
    const u64 time = now_ns();
    if (dropped_ == reported_ || (!now && time < reported_ns_ + report_interval_ns)) return;
    log::warning(
        "{}: {} frames dropped at the source, {} of them since the last message: the pipeline is slower",
        where_.written, dropped_, dropped_ - reported_);
    reported_ = dropped_;
    reported_ns_ = time;
}

}  // namespace carousel::stages::video
