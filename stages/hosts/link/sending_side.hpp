#pragma once
// The side of a link that sends frames: handshake, retention and retransmission. Not thread-safe: the caller
// must lock.
//
// This side keeps a frame from offer() on. It keeps the frame until the receiver has reported that the frame
// is committed on the receiving host, because nothing else proves that the frame has arrived. If
// hello::by_durable is set, it keeps the frame until the receiver has reported that the sinks on that host
// have the frame on disk. The frame is also kept until the transport no longer uses its memory. Each
// connection sends the frames again from the WELCOME's `next` on; frames below the WELCOME's `committed` are
// released without being sent. While there is no connection, frames are kept and the connection is retried
// indefinitely. If a WELCOME requests frames that this side has already released, the receiver has lost these
// frames: failure() reports the loss, exactly once.
//
// For work (link_kind::work) the numbers are the receiver's: the first WELCOME contains the number at which
// this process begins. A frame is kept until its answer has arrived over another link. If a WELCOME does not
// continue at this process's position, because the receiver has another ring or has rebuilt its ring, this is
// a failure: the successor begins with new numbers.

#include <map>
#include <optional>
#include <string>

#include "hosts/clock_filter.hpp"
#include "stages/hosts/link/action.hpp"
#include "stages/hosts/link/message.hpp"

namespace carousel::hosts {

class sending_side {
public:
    /// `own_hello`: the constant part of the hello. `first_epoch`: a number above the epochs of all earlier
    /// processes.
    sending_side(hello own_hello, token_file token, u64 first_epoch);

    /// Announces a frame of the stage. To be called in order; the first frame is the oldest one that exists.
    void begin(u64 ring_sequence);
    /// The frame is complete and may be sent.
    void offer(const frame_message& m);
    /// True if the receiver has committed the frame and the transport has finished with it: the frame may be
    /// dropped.
    [[nodiscard]] bool released(u64 ring_sequence) const;
    void forget(u64 ring_sequence) { frames_.erase(ring_sequence); }
    /// Called if no frame follows: the stream ends before this frame.
    void end(u64 ring_sequence) { end_ = ring_sequence; }

    // For work.
    /// Number of the first frame of this process; nothing: no WELCOME has arrived yet.
    [[nodiscard]] const std::optional<u64>& first() const noexcept { return oldest_; }
    /// The remote run that the numbers belong to.
    [[nodiscard]] const std::string& remote_run() const noexcept { return remote_run_; }
    /// True if failure() reports that the numbering does not continue, so that the successor must start a new
    /// numbering.
    [[nodiscard]] bool numbering_restarted() const noexcept { return numbering_restarted_; }
    /// True if all frames that this process's predecessors sent have left the remote run's ring.
    [[nodiscard]] bool is_drained() const noexcept { return oldest_ && durable_ >= *oldest_; }
    /// True if the transport does not read the frame's memory.
    [[nodiscard]] bool is_idle(u64 ring_sequence) const;
    /// Called if no further frame is sent.
    void end_here() { ends_here_ = true; }

    void closed(u32 connection, const std::string& why, u64 now);
    /// Connection of the receiver that has proven that it knows the token; 0: none.
    [[nodiscard]] u32 proven() const noexcept { return proven_ ? connection_ : 0; }
    void received(u32 connection, const message& m, u64 now);
    /// Called when the transport no longer uses a frame's memory, whether or not the frame has arrived.
    void frame_sent(u32 connection, u64 ring_sequence);

    /// Actions that are due now. To be called after every function above, and at next_due().
    [[nodiscard]] actions step(u64 now);
    /// Called if this process did not run in the last `ns` before `now`: excludes this time from every
    /// deadline of the other side.
    void exclude(u64 ns, u64 now) noexcept;
    [[nodiscard]] u64 next_due() const noexcept;

    [[nodiscard]] bool up() const noexcept { return state_ == state::up; }
    /// True if the receiver has confirmed the end of the stream.
    [[nodiscard]] bool end_known() const noexcept { return end_known_; }
    /// Returns the error that no retry can clear, or "".
    [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
    /// Returns the reason why there is no connection, for the log.
    [[nodiscard]] const std::string& disconnect_reason() const noexcept { return disconnect_reason_; }
    [[nodiscard]] u64 connections() const noexcept { return epoch_ - first_epoch_; }
    [[nodiscard]] std::optional<clock_relation> clock(u64 now) const noexcept { return clock_.at(now); }

private:
    enum class state : u8 { disconnected, hello_sent, proof_sent, up };
    struct kept {
        frame_message message;
        bool whole = false;
        u32 under_way = 0;  ///< number of the transport's requests that still read the frame's memory
    };

    void drop(const std::string& why, u64 now);
    void take(const proof_message& m, u64 now);
    void take(const welcome& m, u64 now);
    void connect(actions& out, u64 now);
    void send_frames(actions& out);
    void take_numbers(const welcome& m);
    [[nodiscard]] u64 may_have_arrived() const noexcept;
    void enter_up(const welcome& m);
    [[nodiscard]] bool is_work() const noexcept {
        return own_hello_.kind == static_cast<u8>(link_kind::work);
    }
    [[nodiscard]] u64 kept_from() const noexcept {
        return own_hello_.by_durable != 0 ? durable_ : committed_;
    }
    void queue_message(actions& out, const message& m);

    hello own_hello_;
    token_file token_;
    u64 first_epoch_, epoch_;
    std::map<u64, kept> frames_;
    std::optional<u64> oldest_, end_;
    state state_ = state::disconnected;
    bool proven_ = false;  ///< the receiver of this connection has proven that it knows the token
    u64 since_ns_ = 0, last_received_ns_ = 0, ping_ns_ = 0, retry_ns_ = 0;
    u64 rest_ns_ = shortest_rest_ns;  ///< delay before the next attempt to connect
    u64 committed_ = 0, next_ = 0, window_ = 1;
    u64 highest_next_ = 0;  ///< highest value of next_ so far
    u64 durable_ = 0;       ///< if hello::by_durable is set, all frames below this number may be released
    bool close_ = false, end_sent_ = false, end_known_ = false;
    bool ends_here_ = false, numbering_restarted_ = false, welcomed_ = false;
    u32 connection_ = 0, to_close_ = 0;
    actions answers_;
    std::string failure_, disconnect_reason_, remote_run_;
    clock_filter clock_;
};

}  // namespace carousel::hosts
