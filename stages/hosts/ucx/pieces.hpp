#pragma once
// A frame's bytes cross the link in pieces, each a message of the transport with a few words in front:
//
//   offset, bytes of the whole frame, then (in front of the first piece) the FRAME message
//
// Why not each frame as one message: UCX moves a long one by a rendezvous, and all rendezvous that are under
// way share the network. By that the end of frame n is told behind the bytes of every frame that was begun
// meanwhile, so frames come in bursts: the network rests while a burst is hashed and copied, and the copies
// rest while the next one comes. Behind long messages a PING waits, too, and a slow link seemed to be a
// silent one. Pieces come in order; of a sender that breaks that nothing more is taken.

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace carousel::hosts {

/// A piece is what a link carries in 20 ms, within these bounds. A large one costs the sender least, since a
/// rendezvous moves it without a copy of UCX's own; small ones let a PING through where the network is slow.
/// The large one is the fastest of 0.1 to 8 MB over loopback of 16 cores. A rendezvous wakes both sides once
/// more, though, and on two cores somebody else has to stop for that: there the small one is 1.4 times as
/// fast (tests/bench/FIGURES.md), so a host with few cores has no others.
inline constexpr u64 least_piece = 120'000, most_piece = 1024 * 1024;
inline constexpr u64 piece_takes_ns = 20'000'000;

/// How fast the pieces of one connection go.
class pace {
public:
    explicit pace(u64 most = most_piece) noexcept : most_(most) {}
    void begun(u64 now_ns) noexcept;
    void over(u64 bytes, u64 now_ns) noexcept;
    [[nodiscard]] u32 under_way() const noexcept { return under_way_; }
    /// Of the next piece.
    [[nodiscard]] u64 piece_bytes() const noexcept;

private:
    static constexpr u64 min_span_ns = 2'000'000;  ///< shorter spans tell of a socket's buffer
    u64 most_;
    u32 under_way_ = 0;
    u64 since_ns_ = 0, bytes_ = 0;
    f64 bytes_a_ns_ = 0;
};

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
    /// Of so many bytes at most. Nothing: all are given.
    [[nodiscard]] std::optional<piece> next(u64 most_bytes);

private:
    std::deque<std::shared_ptr<outgoing_frame>> frames_;
};

/// A frame that comes. It is over when nobody holds it any more: neither its connection, which waits for more
/// pieces, nor a piece whose bytes are under way. Then it is told whether all have come.
class arriving_frame {
public:
    /// `room` null: its bytes go nowhere, and nothing is told.
    arriving_frame(std::byte* room, u64 bytes, std::function<void(bool whole)> over)
        : room_(room), bytes_(bytes), over_(std::move(over)) {}
    ~arriving_frame() {
        if (room_ != nullptr) over_(got_ == bytes_);
    }
    arriving_frame(const arriving_frame&) = delete;
    arriving_frame& operator=(const arriving_frame&) = delete;
    /// So many bytes of it are where they belong.
    void got(u64 bytes) noexcept { got_ += bytes; }

private:
    friend class incoming_frames;
    std::byte* room_;
    u64 bytes_, got_ = 0;
    std::function<void(bool)> over_;
};

/// Those of one connection, one after the other.
class incoming_frames {
public:
    using begin_frame =
        std::function<std::shared_ptr<arriving_frame>(std::span<const std::byte> header, u64 bytes)>;
    struct place {
        std::shared_ptr<arriving_frame> of;  ///< as long as the piece's bytes come; got() when they have
        std::byte* to;                       ///< null: nowhere
    };
    /// Where a piece of so many bytes goes. Nothing: it is none that may come now.
    [[nodiscard]] std::optional<place> next(std::span<const std::byte> front, u64 bytes,
                                            const begin_frame& begin);

private:
    std::shared_ptr<arriving_frame> frame_;  ///< of which more is to come
    u64 begun_ = 0;                          ///< bytes of it whose pieces have begun
};

}  // namespace carousel::hosts
