#pragma once
// The side of a link that receives frames: whom it believes, what it takes, what it has whole. Not
// thread-safe: who uses it locks.
//
// The newest sender that knows the token has the link: its predecessor's connection is closed, and it is
// welcomed once nothing is under way from that one into our memory. One of an older process is not let in
// beside a younger. Frame n goes into buffer n mod window, and the sender has at most a window under way, so
// its buffer is free; a sender that breaks that loses its connection. What is whole is looked at (the hash)
// before anybody begins it. Only what is committed in the ring here is acknowledged.
//
// Of work (link_kind::work) any run may send, one after the other: they all go on at this ring's number. Of
// answers there is no ring here: each sender's frames are taken from the oldest that it has.

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hosts/clock_filter.hpp"
#include "stages/hosts/link/action.hpp"
#include "stages/hosts/link/token_file.hpp"

namespace carousel::hosts {

class receiving_side {
public:
    /// `expected`: format, payload_bytes and parameters that a sender must have. `sender`: the run whose
    /// frames this ring has, "" if it has none yet. `next`: the first frame that is not committed here.
    receiving_side(hello expected, token_file token, std::string run, std::string sender, u64 next,
                   u32 window);

    /// How frames may come beside packing::none.
    void unpacks(packing how) { can_unpack_.push_back(how); }
    /// Other links lead to this run, too: one may have heard further than another how far its sinks were.
    void expect_other_links() { has_other_links_ = true; }
    /// Whatever run sends goes on for the one before it, if it leaves nothing out: somebody else sees to
    /// that.
    void accepts_successors() { accepts_successors_ = true; }

    void accepted(u32 connection, u64 now);
    void closed(u32 connection);
    /// The transport has closed a connection whose peer sent what its limits forbid: logged as log_line() at
    /// most every 5 s.
    void limit_exceeded(const std::string& why, u64 now);
    /// The connection whose sender has proved that it knows the token; 0: none.
    [[nodiscard]] u32 proven() const noexcept { return current_; }
    void received(u32 connection, const message& m, u64 now);
    /// A frame's bytes are about to come: into this buffer, or nowhere.
    [[nodiscard]] std::optional<u32> frame_begins(u32 connection, const frame_message& m, u64 now);
    /// What was to be a frame is none, or has another length than its header says.
    void frame_is_damaged(u32 connection);
    /// The transport is done with that buffer; `whole`: every byte is there.
    void frame_ends(u32 buffer, bool whole, u64 now);

    // The stage's side.
    /// A frame that is there whole, with its buffer `sequence % window`; null: not yet.
    [[nodiscard]] const frame_message* whole(u64 ring_sequence) const;
    /// Of answers: the oldest that is there whole and was not freed.
    [[nodiscard]] const frame_message* oldest_whole() const;
    /// Its hash was not that of its bytes: it is asked for again, by a new connection.
    void damaged(u64 ring_sequence, u64 now);
    /// Its bytes are not needed any more.
    void free_buffer(u64 ring_sequence);
    /// All below are committed in the ring here.
    void committed(u64 below);
    /// All below are in the files of each sink behind this ring.
    void durable(u64 below);
    /// Does the sender wait for that?
    [[nodiscard]] bool wants_durable() const noexcept { return by_durable_; }
    /// The frames below were committed by a predecessor.
    void skip_to(u64 ring_sequence);
    /// The sender said that its stream ends before this one; for stage code to keep, then end_is_kept().
    [[nodiscard]] const std::optional<u64>& end() const noexcept { return end_; }
    void end_is_kept() { end_kept_ = true; }
    /// Whose frames these are; to be kept before the WELCOME goes: sender_is_kept().
    [[nodiscard]] const std::string& sender() const noexcept { return sender_; }
    void sender_is_kept() { sender_kept_ = true; }
    [[nodiscard]] bool sender_must_be_kept() const noexcept { return !sender_kept_; }
    /// This side leaves: tells the sender.
    void leave(const std::string& why) { leaving_ = why; }

    [[nodiscard]] actions step(u64 now);
    [[nodiscard]] u64 next_due() const noexcept;
    [[nodiscard]] bool up() const noexcept { return current_ != 0 && welcomed_; }
    [[nodiscard]] u64 next() const noexcept { return next_; }
    /// The sending host's clock.
    [[nodiscard]] std::optional<clock_relation> clock(u64 now) const noexcept { return clock_.at(now); }
    /// What is worth a line in the log since the last call; "" if nothing.
    [[nodiscard]] std::string log_line();
    /// As log_line(), and somebody may have to do something.
    [[nodiscard]] std::string warning();

private:
    struct peer {
        u64 since_ns = 0;
        u64 number = 0;  ///< in the order in which they came
        std::optional<hello> peer_hello;
        nonce fresh{};
        bool refused = false;
    };
    struct buffer {
        enum class state : u8 { empty, arriving, whole, freed };
        state is = state::empty;
        frame_message message;
    };
    static constexpr std::size_t max_unauthenticated = 8;  ///< connections that don't have the link
    static constexpr u64 log_again_ns = 5 * ns_per_s;      ///< of what is said at each attempt

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
        arrive_;         ///< first not whole; first not committed; next to come on this connection
    u64 delivered_ = 0;  ///< by the sinks; may be ahead of committed_ for a moment
    bool has_other_links_ = false, accepts_successors_ = false;
    std::vector<packing> can_unpack_{packing::none};
    std::vector<buffer> buffers_;
    std::map<u32, peer> peers_;  ///< all that are open
    u32 current_ = 0;            ///< 0: nobody has the link
    u64 accepted_ = 0;           ///< connections, ever
    bool welcomed_ = false, end_kept_ = false, end_acknowledged_ = false, by_durable_ = false;
    u8 packed_ = 0;  ///< how this sender's frames may come
    u64 current_epoch_ = 0, last_received_ns_ = 0, ping_ns_ = 0, version_logged_ns_ = 0;
    std::optional<u64> end_;
    std::string leaving_, log_line_, warning_;
    std::map<std::string, u64> rejected_ns_;  ///< when somebody was, by the words of it
    clock_filter clock_;
    actions out_;
};

}  // namespace carousel::hosts
