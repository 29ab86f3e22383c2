#include "stages/hosts/ucx/pieces.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace carousel::hosts {
namespace {
struct piece_front {
    u64 offset, bytes;
};
}  // namespace

void pace::begun(u64 now_ns) noexcept {
    if (under_way_++ == 0)
        since_ns_ = now_ns, bytes_ = 0;  // the time during which there are no frames is
                                         // not counted
}

void pace::over(u64 bytes, u64 now_ns) noexcept {
    --under_way_;
    bytes_ += bytes;
    if (now_ns < since_ns_ + min_span_ns) return;
    const f64 seen = static_cast<f64>(bytes_) / static_cast<f64>(now_ns - since_ns_);
    bytes_a_ns_ = bytes_a_ns_ > 0 ? (3 * bytes_a_ns_ + seen) / 4 : seen;
    since_ns_ = now_ns, bytes_ = 0;
}

u64 pace::piece_bytes() const noexcept {
    return static_cast<u64>(std::clamp(bytes_a_ns_ * static_cast<f64>(piece_takes_ns),
                                       static_cast<f64>(least_piece), static_cast<f64>(most_)));
}

std::optional<outgoing_frames::piece> outgoing_frames::next(u64 most_bytes) {
    if (frames_.empty()) return std::nullopt;
    outgoing_frame& f = *frames_.front();
    piece out{frames_.front(), {}, {f.data_ + f.given_, std::min(most_bytes, f.bytes_ - f.given_)}};
    const piece_front front{f.given_, f.bytes_};
    out.front.resize(sizeof front);
    std::memcpy(out.front.data(), &front, sizeof front);
    if (f.given_ == 0) out.front.insert(out.front.end(), f.header_.begin(), f.header_.end());
    f.given_ += out.data.size();
    if (f.given_ == f.bytes_) frames_.pop_front();
    return out;
}

std::optional<incoming_frames::place> incoming_frames::next(std::span<const std::byte> front, u64 bytes,
                                                            const begin_frame& begin) {
    piece_front at{};
    if (front.size() < sizeof at) return std::nullopt;
    std::memcpy(&at, front.data(), sizeof at);
    if (frame_ ? at.offset != begun_ || at.bytes != frame_->bytes_ : at.offset != 0) return std::nullopt;
    if (bytes > at.bytes - at.offset || (bytes == 0 && at.bytes > 0)) return std::nullopt;
    if (!frame_) {
        frame_ = begin(front.subspan(sizeof at), at.bytes);
        begun_ = 0;
    }
    place out{frame_, frame_->room_ != nullptr ? frame_->room_ + begun_ : nullptr};
    begun_ += bytes;
    if (begun_ == at.bytes) frame_.reset();
    return out;
}

}  // namespace carousel::hosts
