#pragma once
// A frame's bytes cross the link in pieces, each a message of the transport with a short header:
//
//   offset, bytes of the whole frame, then (before the first piece) the FRAME message
//
// Why not one message per frame: UCX moves a long message by a rendezvous, and all rendezvous in flight share
// the network. The end of frame n is then reported after the bytes of every frame that was begun meanwhile,
// so frames arrive in bursts: the network is idle while a burst is hashed and copied, and the copies are idle
// while the next burst arrives. A PING also waits for long messages, and a slow link looked like a silent
// one. Pieces arrive in order; after a violation no more pieces of that sender are accepted.

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace carousel::hosts {

/// A piece is what a link carries in 20 ms, within these limits. Large pieces cost the sender least, since a
/// rendezvous moves them without a copy by UCX; small ones let a PING through on a slow network. The large
/// size is the fastest of 0.1 to 8 MB over loopback on 16 cores. But a rendezvous wakes both sides once more,
/// and on two cores another thread has to stop for that: there the small size is 1.4 times as fast
/// (tests/bench/FIGURES.md), so a host with few cores uses only small pieces.
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

/// A frame that is being sent. It is over when the last reference is released; `over` reports that.
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
        std::shared_ptr<outgoing_frame> of;  ///< held while its bytes are read
        std::vector<std::byte> front;
        std::span<const std::byte> data;
    };
    void add(std::shared_ptr<outgoing_frame> frame) { frames_.push_back(std::move(frame)); }
    /// The next piece, of at most `most_bytes` bytes. Nothing: all were given out.
    [[nodiscard]] std::optional<piece> next(u64 most_bytes);

private:
    std::deque<std::shared_ptr<outgoing_frame>> frames_;
};

/// A frame that is arriving. It is over when the last reference is released: its connection releases it after
/// the last piece, a piece when its bytes have arrived. `over` then reports whether all bytes have arrived.
class arriving_frame {
public:
    /// `room` null: the bytes are discarded, and nothing is reported.
    arriving_frame(std::byte* room, u64 bytes, std::function<void(bool whole)> over)
        : room_(room), bytes_(bytes), over_(std::move(over)) {}
    ~arriving_frame() {
        if (room_ != nullptr) over_(got_ == bytes_);
    }
    arriving_frame(const arriving_frame&) = delete;
    arriving_frame& operator=(const arriving_frame&) = delete;
    /// `bytes` bytes have arrived at their place.
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
        std::shared_ptr<arriving_frame> of;  ///< held while the piece's bytes arrive; got() when they have
        std::byte* to;                       ///< null: discard
    };
    /// Where a piece of `bytes` bytes goes. Nothing: the piece is invalid at this point.
    [[nodiscard]] std::optional<place> next(std::span<const std::byte> front, u64 bytes,
                                            const begin_frame& begin);

private:
    std::shared_ptr<arriving_frame> frame_;  ///< more pieces of it are expected
    u64 begun_ = 0;                          ///< bytes of it whose pieces have begun
};

}  // namespace carousel::hosts
