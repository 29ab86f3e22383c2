#pragma once
// A frame's bytes cross the link in pieces, each a message of the transport with a few words in front:
//
//   offset, bytes of the whole frame, then (in front of the first piece) the FRAME message
//
// Why not each frame as one message: UCX then moves it by a rendezvous. By that the end of frame n is told
// behind the bytes of every frame that was begun meanwhile, so frames come in bursts: the network rests while
// a burst is hashed and copied, and the copies rest while the next one comes. Behind a long message a PING
// waits, too, and a slow link seemed to be a silent one. Pieces come in order; of a sender that breaks that
// nothing more is taken.

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace carousel::hosts {

/// Of sizes from 60 KB to 8 MB it is the fastest through a veth pair, where 128 KiB and a large one are the
/// slowest, and near the fastest over loopback (tests/bench/FIGURES.md).
inline constexpr u64 piece_bytes = 120'000;

/// A frame that is being sent. It is over, which is told, when nobody holds it any more.
class outgoing_frame {
public:
    outgoing_frame(std::vector<std::byte> header, const std::byte* data, u64 bytes,
                   std::function<void()> over)
        : header_(std::move(header)), data_(data), bytes_(bytes), over_(std::move(over)) {}
    ~outgoing_frame() { over_(); }
    outgoing_frame(const outgoing_frame&) = delete;
    outgoing_frame& operator=(const outgoing_frame&) = delete;

private:
    friend class outgoing_frames;
    std::vector<std::byte> header_;
    const std::byte* data_;
    u64 bytes_, given_ = 0;
    std::function<void()> over_;
};

/// Those of one connection, in order.
class outgoing_frames {
public:
    struct piece {
        std::shared_ptr<outgoing_frame> of;  ///< as long as its bytes are read
        std::vector<std::byte> front;
        std::span<const std::byte> data;
    };
    void add(std::shared_ptr<outgoing_frame> frame) { frames_.push_back(std::move(frame)); }
    /// Nothing: all are given.
    [[nodiscard]] std::optional<piece> next();

private:
    std::deque<std::shared_ptr<outgoing_frame>> frames_;
};

/// The frame that comes over one connection.
class incoming_frame {
public:
    /// Where a frame's bytes go, or null: nowhere.
    using find_room = std::function<std::byte*(std::span<const std::byte> header, u64 bytes)>;
    enum class taken : u8 {
        part,     ///< more is to come
        whole,    ///< that was the last piece of a frame that has room
        nothing,  ///< that was the last piece of one that has none
        against_the_rules
    };
    [[nodiscard]] taken take(std::span<const std::byte> front, std::span<const std::byte> data,
                             const find_room& room);
    /// A frame has been begun that has room, and is not whole.
    [[nodiscard]] bool half() const noexcept { return comes_ && room_ != nullptr; }

private:
    bool comes_ = false;
    std::byte* room_ = nullptr;
    u64 bytes_ = 0, got_ = 0;
};

}  // namespace carousel::hosts
