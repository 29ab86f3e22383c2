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

std::optional<outgoing_frames::piece> outgoing_frames::next() {
    if (frames_.empty()) return std::nullopt;
    outgoing_frame& f = *frames_.front();
    piece out{frames_.front(), {}, {f.data_ + f.given_, std::min(piece_bytes, f.bytes_ - f.given_)}};
    const piece_front front{f.given_, f.bytes_};
    out.front.resize(sizeof front);
    std::memcpy(out.front.data(), &front, sizeof front);
    if (f.given_ == 0) out.front.insert(out.front.end(), f.header_.begin(), f.header_.end());
    f.given_ += out.data.size();
    if (f.given_ == f.bytes_) frames_.pop_front();
    return out;
}

incoming_frame::taken incoming_frame::take(std::span<const std::byte> front, std::span<const std::byte> data,
                                           const find_room& room) {
    piece_front at{};
    if (front.size() < sizeof at) return taken::against_the_rules;
    std::memcpy(&at, front.data(), sizeof at);
    if (comes_ ? at.offset != got_ || at.bytes != bytes_ : at.offset != 0) return taken::against_the_rules;
    if (data.size() > at.bytes - at.offset || (data.empty() && at.bytes > 0)) return taken::against_the_rules;
    if (!comes_) {
        bytes_ = at.bytes, got_ = 0;
        room_ = room(front.subspan(sizeof at), at.bytes);
        comes_ = true;
    }
    if (room_ != nullptr && !data.empty()) std::memcpy(room_ + got_, data.data(), data.size());
    got_ += data.size();
    if (got_ < bytes_) return taken::part;
    comes_ = false;
    return room_ != nullptr ? taken::whole : taken::nothing;
}

}  // namespace carousel::hosts
