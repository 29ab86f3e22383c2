#pragma once
// The side of a link that receives frames: authentication, flow control, reassembly. Not thread-safe: the
// caller must lock.
//
// The most recent sender that has proven that it knows the token gets the link: the predecessor's connection
// is closed, and the new sender is accepted once no transfer from the predecessor into our memory is in
// flight. A sender of an older process is not accepted while a sender of a newer process is connected. Frame
// n is stored in buffer n mod window; the sender has at most one window of frames in flight, so this buffer
// is free. If a sender has more frames in flight, its connection is closed. The hash of a complete frame is
// verified before the frame begins. Only frames committed in the ring here are acknowledged.
//
// For work (link_kind::work) any run may send, one run after the other; each continues at this ring's number.
// A receiver of answers has no ring on this host: it accepts the frames of each sender from that sender's
// oldest frame on.

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hosts/clock_filter.hpp"
#include "stages/hosts/link/action.hpp"
#include "stages/hosts/link/message.hpp"

namespace carousel::hosts {

class receiving_side {
public:
    /// `expected`: format, payload_bytes and parameters that a sender must have. `sender`: the run whose
    /// frames this ring contains; "" if the ring has no frames yet. `next`: the first frame that is not
    /// committed here.
    receiving_side(hello expected, token_file token, std::string run, std::string sender, u64 next,
                   u32 window);

    /// Accepted compressions, in addition to packing::none.
    void unpacks(packing how) { can_unpack_.push_back(how); }
    /// This run has other receiving links, one of which may have more recent information about the progress
    /// of its sinks.
    void expect_other_links() { has_other_links_ = true; }
    /// After this call, every sending run that omits no frame is accepted as the continuation of the
    /// previous run. Another component ensures that the sending run really continues the previous one.
    void accepts_successors() { accepts_successors_ = true; }

    void accepted(u32 connection, u64 now);
    void closed(u32 connection);
    /// Called after the transport has closed a connection whose peer exceeded its limits; log_line() reports
    /// this at most every 5 s.
    void limit_exceeded(const std::string& why, u64 now);
    /// Connection of the sender that has proven that it knows the token; 0: none.
    [[nodiscard]] u32 proven() const noexcept { return current_; }
    void received(u32 connection, const message& m, u64 now);
    /// Called when a frame's bytes are about to arrive. Returns the buffer for these bytes; nothing: the
    /// bytes are to be discarded.
    [[nodiscard]] std::optional<u32> frame_begins(u32 connection, const frame_message& m, u64 now);
    /// Called if the frame's header is invalid, or if it states another length.
    void frame_is_damaged(u32 connection);
    /// Called when the transport no longer uses that buffer; `whole`: all bytes have arrived.
    void frame_ends(u32 buffer, bool whole, u64 now);

    // Called by the stage.
    /// Returns the frame in buffer `ring_sequence % window` if it is complete; null: it is not.
    [[nodiscard]] const frame_message* whole(u64 ring_sequence) const;
    /// Only for a receiver of answers: returns the oldest frame that is complete and not freed.
    [[nodiscard]] const frame_message* oldest_whole() const;
    /// Called if the frame's bytes do not match its hash: the frame is requested again, with a new
    /// connection.
    void damaged(u64 ring_sequence, u64 now);
    /// Called when the frame's bytes are not needed any more.
    void free_buffer(u64 ring_sequence);
    /// Called when all frames below this number are committed in the ring of this host.
    void committed(u64 below);
    /// Called when all frames below this number are in the files of each sink downstream of this ring.
    void durable(u64 below);
    /// True if the sender waits for durable().
    [[nodiscard]] bool wants_durable() const noexcept { return by_durable_; }
    /// Called if a predecessor has committed all frames below this number.
    void skip_to(u64 ring_sequence);
    /// Returns the frame before which the sender's stream ends; the caller saves it and then calls
    /// end_is_kept().
    [[nodiscard]] const std::optional<u64>& end() const noexcept { return end_; }
    void end_is_kept() { end_kept_ = true; }
    /// Returns the run that sends; the caller saves it and then calls sender_is_kept(), before the WELCOME is
    /// sent.
    [[nodiscard]] const std::string& sender() const noexcept { return sender_; }
    void sender_is_kept() { sender_kept_ = true; }
    [[nodiscard]] bool sender_must_be_kept() const noexcept { return !sender_kept_; }
    /// Called when the receiving run ends: notifies the sender.
    void leave(const std::string& why) { leaving_ = why; }

    [[nodiscard]] actions step(u64 now);
    /// Called if this process did not run in the last `ns` before `now`: excludes this time from every
    /// deadline of the other side.
    void exclude(u64 ns, u64 now) noexcept;
    [[nodiscard]] u64 next_due() const noexcept;
    [[nodiscard]] bool up() const noexcept { return current_ != 0 && welcomed_; }
    [[nodiscard]] u64 next() const noexcept { return next_; }
    /// The sending host's clock.
    [[nodiscard]] std::optional<clock_relation> clock(u64 now) const noexcept { return clock_.at(now); }
    /// Returns the text for the log since the last call; "": none.
    [[nodiscard]] std::string log_line();
    /// Like log_line(), for events that the user may have to act on.
    [[nodiscard]] std::string warning();

private:
    struct peer {
        u64 since_ns = 0;
        u64 number = 0;  ///< order of arrival
        std::optional<hello> peer_hello;
        nonce fresh{};
        bool refused = false;
    };
    struct buffer {
        enum class state : u8 { empty, arriving, whole, freed };
        state is = state::empty;
        frame_message message;
    };
    static constexpr std::size_t max_unauthenticated = 8;  ///< connections that do not own the link
    static constexpr u64 log_again_ns = 5 * ns_per_s;      ///< interval of repeated log lines

    void take(u32 connection, peer& p, const hello& h, u64 now);
    void take(u32 connection, peer& p, const proof_message& m, u64 now);
    [[nodiscard]] std::string objection(const hello& h) const;
    [[nodiscard]] std::string mismatch(const hello& h) const;
    [[nodiscard]] std::string gap_before(const hello& h) const;
    [[nodiscard]] bool leaves_out(const hello& h) const;
    [[nodiscard]] bool may_leave_out(const hello& h) const;
    void reject_version(u32 connection, peer& p, u32 version, u64 now);
    void refuse_peer(u32 connection, peer& p, const std::string& why);
    void rejected(const std::string& words, u64 now);
    void drop(u32 connection);
    void welcome_current();
    [[nodiscard]] bool is(link_kind k) const noexcept { return expected_.kind == static_cast<u8>(k); }
    void queue_message(u32 connection, const message& m);
    [[nodiscard]] bool arriving() const;
    [[nodiscard]] u64 durable() const noexcept { return std::min(delivered_, committed_); }
    [[nodiscard]] buffer& of(u64 ring_sequence) { return buffers_[ring_sequence % buffers_.size()]; }
    [[nodiscard]] const buffer& of(u64 ring_sequence) const {
        return buffers_[ring_sequence % buffers_.size()];
    }

    hello expected_;
    token_file token_;
    std::string run_, sender_;
    bool sender_kept_ = true;
    u64 next_, committed_,
        arrive_;  ///< three frame numbers: the first incomplete frame, the first uncommitted frame, and the
                  ///< next frame to arrive on this connection
    u64 delivered_ = 0;  ///< the sinks have delivered all frames below this number; for a short time it may
                         ///< be larger than committed_
    bool has_other_links_ = false, accepts_successors_ = false;
    std::vector<packing> can_unpack_{packing::none};
    std::vector<buffer> buffers_;
    std::map<u32, peer> peers_;  ///< all open connections
    u32 current_ = 0;            ///< 0: no connection owns the link
    u64 accepted_ = 0;           ///< connections accepted so far
    bool welcomed_ = false, end_kept_ = false, end_acknowledged_ = false, by_durable_ = false;
    u8 packed_ = 0;  ///< the compression that this sender may use for its frames
    u64 current_epoch_ = 0, last_received_ns_ = 0, ping_ns_ = 0, version_logged_ns_ = 0;
    std::optional<u64> end_;
    std::string leaving_, log_line_, warning_;
    std::map<std::string, u64> rejected_ns_;  ///< maps a text to the time when it was last logged
    clock_filter clock_;
    actions out_;
};

}  // namespace carousel::hosts
