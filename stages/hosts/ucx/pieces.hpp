#pragma once
// A frame's bytes cross the link in pieces, each a message of the transport with a short header:
//
//   offset, bytes of the whole frame, then (before the first piece) the FRAME message
//
// The reason for not using one message per frame: UCX transfers a long message by a rendezvous, and all
// rendezvous in flight share the network. So frame n would be complete only after the bytes of all frames
// that were begun during its transfer, and frames would arrive in bursts: while a burst is hashed and copied
// the network is idle, and while the next burst arrives nothing is hashed or copied. A PING would also wait
// for long messages, so a slow link would look like a silent link. Pieces must arrive in order; if they do
// not, no more pieces of that sender are accepted.

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace carousel::hosts {

/// The size of a piece is the number of bytes that the link transfers in 20 ms, limited to the range of these
/// two sizes. Large pieces cost the sender least, because UCX transfers them by a rendezvous without copying
/// them. Small pieces allow a PING to be sent between them on a slow network. The large size was the fastest
/// of the sizes from 0.1 to 8 MB, measured over loopback on 16 cores. But a rendezvous wakes both sides one
/// additional time, and on a host with two cores this interrupts another thread. On such a host the small
/// size is 1.4 times as fast (tests/bench/FIGURES.md), so a host with few cores uses only small pieces.
inline constexpr u64 least_piece = 120'000, most_piece = 1024 * 1024;
inline constexpr u64 piece_takes_ns = 20'000'000;

/// Measured rate of the pieces of one connection.
class pace {
public:
    explicit pace(u64 most = most_piece) noexcept : most_(most) {}
    void begun(u64 now_ns) noexcept;
    void over(u64 bytes, u64 now_ns) noexcept;
    [[nodiscard]] u32 under_way() const noexcept { return under_way_; }
    /// Size of the next piece.
    [[nodiscard]] u64 piece_bytes() const noexcept;

private:
    static constexpr u64 min_span_ns = 2'000'000;  ///< shorter spans measure only a socket's buffer
    u64 most_;
    u32 under_way_ = 0;
    u64 since_ns_ = 0, bytes_ = 0;
    f64 bytes_a_ns_ = 0;
};

/// A frame that is being sent. The frame is complete when the last reference is released; `over` reports
/// that.
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

/// The outgoing frames of one connection, in order.
class outgoing_frames {
public:
    struct piece {
        std::shared_ptr<outgoing_frame> of;  ///< the reference is held while the piece's bytes are read
        std::vector<std::byte> front;
        std::span<const std::byte> data;
    };
    void add(std::shared_ptr<outgoing_frame> frame) { frames_.push_back(std::move(frame)); }
    /// Returns the next piece, which has at most `most_bytes` bytes. Returns nothing if all pieces were given
    /// out.
    [[nodiscard]] std::optional<piece> next(u64 most_bytes);

private:
    std::deque<std::shared_ptr<outgoing_frame>> frames_;
};

/// A frame that is arriving. The frame is complete when the last reference is released: the connection
/// releases its reference after the last piece, and each piece releases its reference when its bytes have
/// arrived. `over` then reports whether all bytes have arrived.
class arriving_frame {
public:
    /// If `room` is null, the bytes are discarded, and nothing is reported.
    arriving_frame(std::byte* room, u64 bytes, std::function<void(bool whole)> over)
        : room_(room), bytes_(bytes), over_(std::move(over)) {}
    ~arriving_frame() {
        if (room_ != nullptr) over_(got_ == bytes_);
    }
    arriving_frame(const arriving_frame&) = delete;
    arriving_frame& operator=(const arriving_frame&) = delete;
    /// Called when `bytes` bytes have arrived at their destination.
    void got(u64 bytes) noexcept { got_ += bytes; }

private:
    friend class incoming_frames;
    std::byte* room_;
    u64 bytes_, got_ = 0;
    std::function<void(bool)> over_;
};

/// The incoming frames of one connection, one after the other.
class incoming_frames {
public:
    using begin_frame =
        std::function<std::shared_ptr<arriving_frame>(std::span<const std::byte> header, u64 bytes)>;
    struct place {
        std::shared_ptr<arriving_frame> of;  ///< the reference is held while the piece's bytes arrive; got()
                                             ///< is called after they have arrived
        std::byte* to;                       ///< null: discard
    };
    /// Returns the destination of a piece of `bytes` bytes. Returns nothing if the piece is invalid at this
    /// point.
    [[nodiscard]] std::optional<place> next(std::span<const std::byte> front, u64 bytes,
                                            const begin_frame& begin);

private:
    std::shared_ptr<arriving_frame> frame_;  ///< the frame whose next pieces are expected
    u64 begun_ = 0;                          ///< number of the frame's bytes that are in pieces whose
                                             ///< transfer has begun
};

}  // namespace carousel::hosts
