#include "stages/video/video_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/log.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace carousel::stages::video {
namespace {

/// Below the number of deaths without a commit after which a stage fails.
constexpr u32 most_deaths_on_the_way = 4;
constexpr u64 sample_bytes = 64 * 1024;
constexpr i64 most_unread = 10'000;  ///< a longer gap is rather a damaged time

std::string path_of(const address& where) {
    return where.url.starts_with("file:") ? where.url.substr(5) : where.url;
}

/// The file that a path names now; zeros if there is none here.
std::pair<dev_t, ino_t> file_at(const std::string& path) {
    struct stat s {};
    return ::stat(path.c_str(), &s) == 0 ? std::pair(s.st_dev, s.st_ino) : std::pair<dev_t, ino_t>();
}

/// Identifies the content of an input, without reading all of it. A file that was only copied or touched has
/// the same content.
u64 content_of(const reader_setup& with, const media_input& in) {
    std::string text = fmt::format("{} {} {} {}", in.bytes(), in.stream().index, LIBAVCODEC_VERSION_INT,
                                   LIBAVFORMAT_VERSION_INT);
    const std::string path = path_of(with.where);
    const shm::unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) text += path;  // on a web server
    std::vector<char> sample(sample_bytes);
    for (const u64 at : {u64{0}, in.bytes() / 2, in.bytes() - std::min(in.bytes(), sample_bytes)})
        if (const ssize_t got = file ? read_whole_at(file.get(), sample.data(), sample.size(), at) : -1;
            got > 0)
            text += fmt::format(" {:x}", XXH3_64bits(sample.data(), static_cast<std::size_t>(got)));
    media::options options(with.options);
    for (const AVDictionaryEntry* e = nullptr;
         (e = av_dict_get(*options.argument(), "", e, AV_DICT_IGNORE_SUFFIX)) != nullptr;)
        text += fmt::format(" {}={}", e->key, e->value);
    return XXH3_64bits(text.data(), text.size());
}

/// Names the index that later runs use. The time of the last change is part of it, because content_of() does
/// not read all of a file.
std::string kept_name_of(const address& where, u64 content) {
    std::error_code failed;
    const auto changed = std::filesystem::last_write_time(path_of(where), failed);
    const i64 time = failed ? 0 : i64{changed.time_since_epoch().count()};
    return fmt::format("{:016x}.index", XXH3_64bits_withSeed(&time, sizeof time, content));
}

}  // namespace

video_reader::video_reader(const reader_setup& with) : with_(with), packet_(av_packet_alloc()) {
    if (!packet_) throw std::bad_alloc();
    open_at_beginning();
    if (with_.index_path.empty()) return;
    const u64 content = content_of(with_, *input_);
    content_ = recorded_content(with_.note_stem + ".content", content);
    require_content(content);
    note_ = std::make_unique<decoder_note>(with_.note_stem, with_.epoch);
    std::error_code ignored;
    if (!with_.kept_index_path.empty()) {
        with_.kept_index_path =
            fmt::format("{}/{}", with_.kept_index_path, kept_name_of(with_.where, content));
        // fails if a predecessor has made one, or if there is none
        std::filesystem::copy_file(with_.kept_index_path, with_.index_path, ignored);
    }
    index_ = std::make_unique<frame_index>(with_.index_path, content);
}

void video_reader::require_content(u64 found) const {
    if (content_ != found) refuse_change();
}

void video_reader::refuse_change() const {
    throw config_error(
        fmt::format("{} has changed since frame 0 of this run was read; restore it or start a new run",
                    with_.where.written));
}

std::optional<u64> video_reader::total() const noexcept {
    if (index_ && index_->total()) return index_->total();
    return end_ != 0 ? std::optional(end_) : std::nullopt;
}

f64 video_reader::duration_s() const noexcept {
    const std::optional<u64> frames = total();
    if (!frames || *frames < 2) return 0;
    const bool indexed = index_ && index_->total();
    const i64 first = indexed ? (*index_)[0].pts : first_pts_,
              last = indexed ? (*index_)[*frames - 1].pts : last_pts_;
    const auto intervals = static_cast<f64>(*frames - 1);
    return static_cast<f64>(last - first) * av_q2d(input_->stream().time_base) * (intervals + 1) / intervals;
}

void video_reader::open_at_beginning() {
    decoder_.reset();
    input_.reset();
    const auto before = file_at(path_of(with_.where));
    input_ = std::make_unique<media_input>(with_.where, with_.stream, with_.options,
                                           with_.where.is_on_server() ? server_patience_s : 0);
    if (before != file_at(path_of(with_.where))) refuse_change();  // content_of() would read the other file
    if (content_) require_content(content_of(with_, *input_));
    decoder_ = std::make_unique<frame_decoder>(open_decoder(*input_, with_.where));
    next_.reset();
    at_ = exact_from_ = 0;
    placed_ = true;
    by_time_ = held_ = drained_ = ends_early_ = false;
    waits_for_key_ = true;
    key_dts_.reset();
    leading_below_.reset();
    last_packet_ = {};
    last_packet_pts_ = AV_NOPTS_VALUE;
}

bool video_reader::start_at(const frame_index::start& from) {
    open_at_beginning();
    const index_entry& key = (*index_)[from.key];
    if (!input_->seek(key.dts)) return false;
    decoder_->restart();
    decoder_->ignore_below(key.pts);
    key_dts_ = key.dts;
    by_time_ = true;
    placed_ = false;
    exact_from_ = from.exact;
    started_at_ = from.key;
    last_packet_ = {key.dts, -1, 0};  // a read from here is another one than from the beginning
    return true;
}

// Also called if the reader is in the middle of the file, but not before `frame`: in a loop.
void video_reader::begin_for(u64 frame) {
    const auto starts = index_ ? index_->starts_for(frame) : std::vector<frame_index::start>();
    for (; attempts_ < starts.size(); ++attempts_)
        if (start_at(starts[attempts_])) return;
    open_at_beginning();
}

void video_reader::restart_earlier(u64 wanted) {
    ++attempts_;
    begin_for(wanted);
}

// The process died while it worked on a packet. If it was asked for a frame then, and is now asked for a
// later one, the runner has given the frame up: the packet is not decoded again. Deaths before the first
// frame that is not committed cost no attempts, so they are counted here.
void video_reader::settle_suspicion() {
    if (!note_ || !note_->suspicion()) return;
    const suspect s = *note_->suspicion();
    const bool given_up = !s.catching_up && number_ > s.frame;
    if (!given_up && !(s.catching_up && s.deaths >= most_deaths_on_the_way)) return;
    const std::string when = given_up ? fmt::format("at frame {}, which was given up", s.frame)
                                      : fmt::format("{} times", s.deaths);
    if (s.step == decoder_step::read)
        log::warning("{}: reading after byte {} ended this stage's process {}", with_.where.written,
                     s.packet.pos, when);
    else
        log::warning(
            "{}: decoding the packet at byte {} ended this stage's process {}: it is skipped, with the "
            "frames "
            "up to the next key frame",
            with_.where.written, s.packet.pos, when);
    note_->skip_suspect();
}

bool video_reader::reach(u64 frame, u64 number, u64 patience_ns) {
    number_ = number;
    settle_suspicion();
    const u64 until = now_ns() + patience_ns;
    if (frame != heading_for_ || (placed_ && at_ > frame)) {
        heading_for_ = frame;
        attempts_ = 0;
        const auto starts = index_ ? index_->starts_for(frame) : std::vector<frame_index::start>();
        if (!placed_ || at_ > frame || (!starts.empty() && starts.front().key > at_)) begin_for(frame);
    }
    const bool on_the_way = !placed_ || at_ < frame;
    while (!placed_ || at_ < frame) {
        if (!next_ && !advance(frame, true)) return true;  // the video ends before the frame
        if (placed_ && at_ < frame) {
            next_.reset();
            ++at_;
        }
        if (now_ns() > until && (!placed_ || at_ < frame)) return false;
    }
    if (on_the_way)
        log::info("continues at frame {}, from {}", frame,
                  by_time_ ? fmt::format("the key frame {}", started_at_) : "the beginning of the video");
    return true;
}

const decoded_frame* video_reader::read(u64 frame, u64 number) {
    if (!reach(frame, number, ~u64{0} / 2)) return nullptr;
    if (!next_ && !advance(frame, false)) return nullptr;
    if (at_ != frame) return nullptr;
    current_ = std::move(*next_);
    next_.reset();
    ++at_;
    return &current_;
}

bool video_reader::advance(u64 wanted, bool catching_up) {
    for (;;) {
        if (index_ && placed_ && index_->total() && at_ >= *index_->total()) return false;
        while (!decoder_->has_frame()) {
            if (drained_) {
                if (!placed_) {  // the seek led to a place after that key frame
                    restart_earlier(wanted);
                    continue;
                }
                end_video();
                return false;
            }
            feed(wanted, catching_up);
        }
        decoded_frame f = decoder_->take_frame();
        if (number(f)) {
            next_ = std::move(f);
            return true;
        }
        restart_earlier(wanted);
    }
}

void video_reader::end_video() {
    end_ = at_;
    if (!index_ || index_->total() || at_ != index_->size()) return;
    index_->complete();
    if (!with_.kept_index_path.empty() && !ends_early_ && !note_->has_skipped())
        index_->keep_as(with_.kept_index_path);
}

int video_reader::read_packet(u64 wanted, bool catching_up) {
    if (note_ && note_->is_end(last_packet_)) return AVERROR_EOF;
    if (note_) note_->begin(decoder_step::read, last_packet_, number_, catching_up);
    (void)media::take_message();
    const int result = input_->read(*packet_);
    if (note_) note_->end();
    read_failure_ = media::take_message();
    if (result >= 0) last_packet_ = id_of(*packet_);
    // The end of a connection is not the end of the video: a successor connects again.
    if (with_.where.is_on_server() && result < 0 && result != AVERROR_EOF && result != AVERROR_INVALIDDATA)
        throw error(exit_code::stage_exception,
                    result == AVERROR_EXIT ? fmt::format("{}: the server has sent no data for {} s",
                                                         with_.where.written, server_patience_s)
                                           : fmt::format("{}: reading from the server failed: {}",
                                                         with_.where.written, media::error_text(result)));
    return result;
}

// If the input has searched for the next packet after damage, the packets between are missing: as many as the
// frame rate has in that time. With frames that are decoded in another order, their times are not known.
void video_reader::report_unread() {
    const i64 before = std::exchange(last_packet_pts_, packet_->pts), now = packet_->pts;
    const AVRational rate = input_->stream().avg_frame_rate;
    const bool ordered = input_->parameters().video_delay == 0;
    if (read_failure_.empty() || !ordered || rate.num <= 0 || before == AV_NOPTS_VALUE ||
        now == AV_NOPTS_VALUE)
        return;
    const i64 frames = av_rescale_q(now - before, input_->stream().time_base, av_inv_q(rate));
    const media::owner<AVPacket> lost(av_packet_alloc());
    if (!lost) throw std::bad_alloc();
    for (i64 k = 1; k < std::min(frames, most_unread); ++k) {
        lost->pts = lost->dts = before + (now - before) * k / frames;
        decoder_->skip(*lost, read_failure_);
    }
}

// Reads one packet and decodes it.
void video_reader::feed(u64 wanted, bool catching_up) {
    const int result = held_ ? 0 : read_packet(wanted, catching_up);
    held_ = false;
    if (result < 0) {
        ends_early_ = result != AVERROR_EOF || (note_ && note_->is_end(last_packet_));
        if (result != AVERROR_EOF)
            log::warning("{}: reading ends early: {}", with_.where.written, media::error_text(result));
        drained_ = true;
        if (note_) note_->begin(decoder_step::decode, last_packet_, number_, catching_up);
        decoder_->drain();
        decoder_->finish();
        if (note_) note_->end();
        return;
    }
    report_unread();
    const bool key = (packet_->flags & AV_PKT_FLAG_KEY) != 0;
    if (key_dts_) {
        if (packet_->dts != *key_dts_) {
            // beyond it: the place of this key frame cannot be found by a seek
            if (packet_->dts != AV_NOPTS_VALUE && packet_->dts > *key_dts_) restart_earlier(wanted);
            return;
        }
        key_dts_.reset();
        waits_for_key_ = false;
    }
    if (waits_for_key_) {
        if (!key) return;
        waits_for_key_ = false;
        if (packet_->pts != AV_NOPTS_VALUE) decoder_->none_missing_below(packet_->pts);
    }
    if (leading_below_ && packet_->pts != AV_NOPTS_VALUE) {
        if (packet_->pts < *leading_below_)
            return decoder_->skip(*packet_, "it refers to frames that were skipped");
        if (packet_->pts > *leading_below_) leading_below_.reset();
    }
    if (note_ && note_->is_skipped(id_of(*packet_)))
        return skip_to_key("decoding this frame, or one that it refers to, ended the stage's process");
    decode(wanted, catching_up);
}

void video_reader::decode(u64 wanted, bool catching_up) {
    if (note_) note_->begin(decoder_step::decode, id_of(*packet_), number_, catching_up);
    decoder_->decode(*packet_);
    if (note_) note_->end();
    if (index_ && decoder_->irregular()) index_->set_irregular();
}

// All packets up to the next key frame are read first, so that their frames are reported as missing in order
// with the pictures that the decoder has kept back.
void video_reader::skip_to_key(const std::string& reason) {
    decoder_->skip(*packet_, reason);
    for (;;) {
        const int result = read_packet(at_, true);
        if (result < 0) break;  // feed() reports it
        const bool key = (packet_->flags & AV_PKT_FLAG_KEY) != 0;
        if (key && !note_->is_skipped(id_of(*packet_))) {
            held_ = true;
            last_packet_pts_ = AV_NOPTS_VALUE;  // the packets before it are reported
            if (packet_->pts != AV_NOPTS_VALUE) leading_below_ = packet_->pts;
            break;
        }
        decoder_->skip(*packet_, reason);
    }
    decoder_->drain();
    decoder_->renew();
}

bool video_reader::number(decoded_frame& f) {
    if (at_ == 0) first_pts_ = f.entry.pts;
    last_pts_ = f.entry.pts;
    if (!index_) return true;
    const u64 known = index_->size();
    if (by_time_) {
        const std::optional<u64> at = index_->at_time(f.entry.pts);
        if (!placed_ && !at) return false;
        if (!placed_) at_ = *at;
        placed_ = true;
        if (at_ < known ? at != at_ : at.has_value()) return false;
    }
    if (at_ > known) return true;  // the index is irregular, or was lost; numbers are counted
    if (at_ == known) {
        index_->append(f.entry);
        return true;
    }
    const index_entry& expected = (*index_)[at_];
    if (by_time_ && at_ >= exact_from_ &&
        (f.entry.missing != expected.missing || f.entry.hash != expected.hash))
        return false;
    if (!by_time_ && !warned_ && f.entry != expected) {
        warned_ = true;
        log::warning("{}: frame {} was decoded to another picture than before", with_.where.written, at_);
    }
    // The index is authoritative: a frame that was reported as missing stays missing.
    if (expected.missing) f.picture.reset();
    if (expected.missing && f.reason.empty()) f.reason = "it was given up before";
    return true;
}

}  // namespace carousel::stages::video
