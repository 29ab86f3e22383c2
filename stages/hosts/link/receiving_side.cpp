#include "stages/hosts/link/receiving_side.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/running_time.hpp"
#include "hosts/seal.hpp"

namespace carousel::hosts {

receiving_side::receiving_side(hello expected, token_file token, std::string run, std::string sender,
                               u64 next, u32 window)
    : expected_(std::move(expected)),
      token_(std::move(token)),
      run_(std::move(run)),
      sender_(std::move(sender)),
      next_(next),
      committed_(next),
      arrive_(next),
      buffers_(std::max(window, 1U)) {}

void receiving_side::queue_message(u32 connection, const message& m) {
    out_.push_back({action::what::send, connection, encode(m)});
}

void receiving_side::drop(u32 connection) {
    if (peers_.erase(connection) == 0) return;
    out_.push_back({action::what::close, connection});
    if (connection != current_) return;
    current_ = 0;
    welcomed_ = false;
}

// If there are too many connections, the oldest one without a proof is closed: a process that has the token
// proves this within milliseconds.
void receiving_side::accepted(u32 connection, u64 now) {
    std::size_t unauthenticated = 0;
    u32 oldest = 0;
    for (const auto& [at, p] : peers_) {
        if (at == current_) continue;
        ++unauthenticated;
        if (oldest == 0 || p.number < peers_.at(oldest).number) oldest = at;
    }
    if (unauthenticated >= max_unauthenticated) drop(oldest);
    peers_[connection] = {now, ++accepted_, {}, {}, false};
}

void receiving_side::closed(u32 connection) {
    if (connection == current_ && welcomed_) log_line_ = "the sending host's connection has ended";
    drop(connection);  // the transport still has to close its endpoint
}

void receiving_side::limit_exceeded(const std::string& why, u64 now) {
    rejected("a peer was disconnected: " + why, now);
}

void receiving_side::received(u32 connection, const message& m, u64 now) {
    const auto at = peers_.find(connection);
    if (at == peers_.end() || at->second.refused) return;
    peer& p = at->second;
    if (const auto* h = std::get_if<hello>(&m); h != nullptr && !p.peer_hello)
        return take(connection, p, *h, now);
    if (const auto* q = std::get_if<proof_message>(&m);
        q != nullptr && p.peer_hello && connection != current_)
        return take(connection, p, *q, now);
    if (connection != current_) return drop(connection);
    last_received_ns_ = now;
    if (const auto* q = std::get_if<ping>(&m)) queue_message(connection, pong{q->sent_ns, now});
    if (const auto* q = std::get_if<pong>(&m)) clock_.answered(q->sent_ns, q->here_ns, now);
    if (const auto* e = std::get_if<stream_end>(&m);
        e != nullptr && welcomed_ && (e->ring_sequence <= committed_ || is(link_kind::answers))) {
        if (!end_) end_ = e->ring_sequence;
        end_acknowledged_ = false;
    }
}

void receiving_side::take(u32 connection, peer& p, const hello& h, u64 now) {
    if (h.version != link_version) return reject_version(connection, p, h.version, now);
    p.peer_hello = h;
    p.fresh = fresh_bytes();
    queue_message(connection, proof_message{p.fresh, token_.prove(side::receiving, h, p.fresh), now, 0});
}

void receiving_side::take(u32 connection, peer& p, const proof_message& m, u64 now) {
    if (!token_.fits(m.of_token, side::sending, *p.peer_hello, p.fresh)) {
        rejected("a peer with a wrong token was rejected", now);
        return drop(connection);
    }
    if (const std::string why = objection(*p.peer_hello); !why.empty()) {
        rejected("a sender was refused: " + why, now);
        return refuse_peer(connection, p, why);
    }
    std::string why = mismatch(*p.peer_hello);
    if (why.empty()) why = gap_before(*p.peer_hello);
    if (!why.empty()) {
        rejected("a sender was disconnected: " + why, now);
        p.refused = true;
        return queue_message(connection, bye{why});
    }
    if (leaves_out(*p.peer_hello))
        warning_ = fmt::format(
            "frames {} to {} are skipped, although the sending host has kept them, because this run begins "
            "at frame {}: according to another link, or to a checkpoint, the previous run has the earlier "
            "frames in its files. If they are not there because --first was wrong, the frames are lost",
            p.peer_hello->oldest, next_ - 1, next_);
    if (current_ != 0 && p.peer_hello->run == sender_ && p.peer_hello->epoch < current_epoch_)
        return drop(connection);
    if (current_ != 0) drop(current_);
    current_ = connection;
    current_epoch_ = p.peer_hello->epoch;
    welcomed_ = false;
    last_received_ns_ = ping_ns_ = now;
    by_durable_ = p.peer_hello->by_durable != 0;
    packed_ = p.peer_hello->packed;
    clock_.forget();
    clock_.answered(m.sent_ns, m.here_ns, now);  // the times are evaluated here, so that the relation of the
                                                 // clocks is known before the first frame
    if (sender_ != p.peer_hello->run) {
        sender_ = p.peer_hello->run;
        sender_kept_ = false;
    }
}

// Describes a difference between the two hosts that another pipeline file or another build on this host can
// resolve; "" if there is none. If there is such a difference, the sender keeps retrying, and the stages on
// the sender's host continue.
std::string receiving_side::mismatch(const hello& h) const {
    if (h.format != expected_.format || h.payload_bytes != expected_.payload_bytes)
        return fmt::format("its frames are {} of {} bytes, but the receiving stage writes {} of {} bytes",
                           h.format, h.payload_bytes, expected_.format, expected_.payload_bytes);
    if (h.kind != expected_.kind)
        return "one end of the link is for instances on another host, and the other end is not: use the same "
               "pipeline file on both hosts";
    if (!expected_.parameters.empty() &&
        (h.parameters != expected_.parameters || h.parameter_bytes != expected_.parameter_bytes))
        return fmt::format(
            "its parameters are {} of {} bytes, but the receiving pipeline's are {} of {} bytes",
            h.parameters.empty() ? "none" : h.parameters, h.parameter_bytes, expected_.parameters,
            expected_.parameter_bytes);
    if (is(link_kind::ring) && h.by_durable != 0 && h.by_durable < expected_.by_durable)
        return fmt::format(
            "it keeps {} frames, but the receiving run makes a checkpoint every {} frames, before which it "
            "releases none: remove in_flight of the sending stage, or set it to at least {}",
            h.by_durable, expected_.by_durable, expected_.by_durable);
    if (std::find(can_unpack_.begin(), can_unpack_.end(), static_cast<packing>(h.packed)) ==
        can_unpack_.end())
        return "its frames are compressed by a method that this build does not support: install liblz4-dev "
               "and libzstd-dev on this host and build again, or remove `compress`";
    return "";
}

// Returns a sentence about an error that no retry can clear; "" if there is no such error. The sender ends
// with this text.
std::string receiving_side::objection(const hello& h) const {
    const bool continues = (h.begins > 0 || accepts_successors_) && h.begins <= next_;
    if (is(link_kind::ring) && !sender_.empty() && h.run != sender_ && next_ > 0 && !continues)
        return fmt::format(
            "the sending run {} (pipeline {}) is a new run, but the frames up to {} were received from run "
            "{}: end the receiving run as well and start again; or, to continue the earlier stream, start "
            "the sending run with --first {}. If a durable host was lost, its new run may have to begin at "
            "an earlier frame. In that case set successors = true for the receiving stage downstream of that "
            "host: the stage then drops the frames that it already has",
            h.run, h.pipeline, next_ - 1, sender_, committed_);
    return "";
}

// Describes a gap between the runs' frames that another run on this host can resolve; "" if there is none. If
// there is such a gap, the sender keeps its frames and retries. If several links lead to a durable host, one
// of them may have more recent information about the sinks' progress than the others, and the restarted run
// begins at the frame that the most recent information gives. The sender of another link may still keep
// frames with lower numbers, at most as many as it has in flight; the sinks already have these frames in
// their files. If only one link leads to the host, that link has all information, so its sender knows the
// frame at which the run begins.
std::string receiving_side::gap_before(const hello& h) const {
    if (!leaves_out(h) || may_leave_out(h)) return "";
    return fmt::format(
        "frames {0} to {1} would be skipped: the receiving run begins at frame {2}, but the sender has "
        "frames from {0} on: end the receiving run, and start it with --first {0}",
        h.oldest, next_ - 1, next_);
}

bool receiving_side::leaves_out(const hello& h) const {
    return is(link_kind::ring) && sender_.empty() && next_ > h.oldest;
}

bool receiving_side::may_leave_out(const hello& h) const {
    return h.by_durable != 0 && has_other_links_ && next_ - h.oldest <= most_durable_under_way;
}

// The peer need not prove that it has the token, because versions may compute the proof in different ways. So
// the peer is unauthenticated: it receives only our version, and cannot flood the log.
void receiving_side::reject_version(u32 connection, peer& p, u32 version, u64 now) {
    p.refused = true;
    hello ours;
    ours.version = link_version;
    queue_message(connection, ours);
    if (now < version_logged_ns_) return;
    version_logged_ns_ = now + log_again_ns;
    log_line_ = fmt::format(
        "the sender uses version {} of the link protocol, but this side uses version {}: use the same build "
        "on both "
        "hosts",
        version, link_version);
}

// The peer retries several times per second until the cause is resolved, so the same text is logged at most
// once per log_again_ns.
void receiving_side::rejected(const std::string& words, u64 now) {
    std::erase_if(rejected_ns_, [now](const auto& logged) { return now - logged.second >= log_again_ns; });
    if (rejected_ns_.try_emplace(words, now).second) log_line_ = words;
}

void receiving_side::refuse_peer(u32 connection, peer& p, const std::string& why) {
    p.refused = true;  // the connection is kept until the peer disconnects, for at most handshake_ns, so that
                       // the message can arrive
    queue_message(connection, refuse{why});
}

bool receiving_side::arriving() const {
    return std::any_of(buffers_.begin(), buffers_.end(),
                       [](const buffer& b) { return b.is == buffer::state::arriving; });
}

// At this point no transfer from an earlier connection is in flight, so frames that are still incomplete must
// be sent again.
void receiving_side::welcome_current() {
    const hello& h = *peers_.at(current_).peer_hello;
    if (is(link_kind::answers)) {
        next_ = committed_ = h.oldest;
        for (buffer& b : buffers_) b.is = buffer::state::empty;
    }
    for (buffer& b : buffers_)
        if (b.is == buffer::state::whole && b.message.ring_sequence >= next_) b.is = buffer::state::empty;
    arrive_ = next_;
    welcomed_ = true;
    queue_message(current_, welcome{run_, committed_, durable(), next_, static_cast<u32>(buffers_.size())});
    log_line_ = fmt::format("frames of {} come from run {} (pipeline {}), from {} on", h.ring, h.run,
                            h.pipeline, next_);
}

std::optional<u32> receiving_side::frame_begins(u32 connection, const frame_message& m, u64 now) {
    if (connection != current_ || !welcomed_ || m.epoch != current_epoch_) return std::nullopt;
    last_received_ns_ = now;
    if (m.ring_sequence < arrive_) {  // the frame is committed, or already in flight
        queue_message(connection, ack{committed_, durable()});
        return std::nullopt;
    }
    const bool sound =
        m.bytes == (m.tombstone_reason.empty() ? expected_.payload_bytes : 0) &&
        (m.packed == 0 ? m.packed_bytes == m.bytes : m.packed == packed_ && m.packed_bytes < m.bytes);
    buffer& b = of(m.ring_sequence);
    if (m.ring_sequence != arrive_ || !sound || b.is == buffer::state::arriving ||
        b.is == buffer::state::whole) {
        log_line_ =
            fmt::format("frame {} violates the link protocol (expected {}), so its sender is disconnected",
                        m.ring_sequence, arrive_);
        drop(connection);
        return std::nullopt;
    }
    b = {buffer::state::arriving, m};
    ++arrive_;
    return static_cast<u32>(m.ring_sequence % buffers_.size());
}

void receiving_side::frame_is_damaged(u32 connection) {
    if (connection == current_)
        log_line_ =
            "the header and the bytes of a received frame do not match, so its sender is disconnected";
    drop(connection);
}

void receiving_side::frame_ends(u32 index, bool whole, u64 now) {
    if (current_ != 0) last_received_ns_ = now;
    buffer& b = buffers_[index];
    b.is = whole ? buffer::state::whole : buffer::state::empty;
    while (of(next_).is == buffer::state::whole && of(next_).message.ring_sequence == next_) ++next_;
}

const frame_message* receiving_side::whole(u64 ring_sequence) const {
    const buffer& b = of(ring_sequence);
    const bool there =
        b.is == buffer::state::whole && b.message.ring_sequence == ring_sequence && ring_sequence < next_;
    return there ? &b.message : nullptr;
}

const frame_message* receiving_side::oldest_whole() const {
    const frame_message* oldest = nullptr;
    if (!up()) return nullptr;  // the sender has disconnected, and will send the frames again
    for (const buffer& b : buffers_)
        if (b.is == buffer::state::whole && b.message.ring_sequence < next_ &&
            (oldest == nullptr || b.message.ring_sequence < oldest->ring_sequence))
            oldest = &b.message;
    return oldest;
}

void receiving_side::damaged(u64 ring_sequence, u64 now) {
    (void)now;
    log_line_ = fmt::format("the bytes of frame {} do not match its hash, so the frame is requested again",
                            ring_sequence);
    for (buffer& b : buffers_)
        if (b.is == buffer::state::whole && b.message.ring_sequence >= ring_sequence)
            b.is = buffer::state::empty;
    next_ = std::min(next_, ring_sequence);
    if (current_ != 0) drop(current_);
}

void receiving_side::free_buffer(u64 ring_sequence) {
    buffer& b = of(ring_sequence);
    if (b.is == buffer::state::whole && b.message.ring_sequence == ring_sequence) b.is = buffer::state::freed;
}

void receiving_side::committed(u64 below) {
    if (below <= committed_) return;
    committed_ = below;
    if (up()) queue_message(current_, ack{committed_, durable()});
}

void receiving_side::durable(u64 below) {
    if (below <= delivered_) return;
    delivered_ = below;
    if (up()) queue_message(current_, ack{committed_, durable()});
}

void receiving_side::skip_to(u64 ring_sequence) {
    for (u64 k = next_ > buffers_.size() ? next_ - buffers_.size() : 0; k < ring_sequence && k < next_; ++k)
        free_buffer(k);
    if (ring_sequence > next_) {
        next_ = ring_sequence;
        if (current_ != 0)
            drop(current_);  // the sender had numbered the frames in flight from a wrong first
                             // number
    }
    committed(ring_sequence);
}

void receiving_side::exclude(u64 ns, u64 now) noexcept {
    for (auto& [connection, p] : peers_) p.since_ns = later_by_gap(p.since_ns, ns, now);
    last_received_ns_ = later_by_gap(last_received_ns_, ns, now);
}

actions receiving_side::step(u64 now) {
    std::vector<u32> late;
    for (const auto& [connection, p] : peers_)
        if (connection != current_ && now - p.since_ns > handshake_ns) late.push_back(connection);
    for (const u32 connection : late) drop(connection);
    if (current_ != 0 && now > last_received_ns_ && now - last_received_ns_ > dead_after_ns) {
        log_line_ = fmt::format("the sending host sent nothing for {} ms", dead_after_ns / ns_per_ms);
        drop(current_);
    }
    if (current_ != 0 && !welcomed_ && sender_kept_ && !arriving()) welcome_current();
    if (up() && now >= ping_ns_) {
        queue_message(current_, ping{now});
        ping_ns_ = now + ping_rest_ns(clock_.answers());
    }
    if (up() && end_ && end_kept_ && !end_acknowledged_) {
        queue_message(current_, bye{"it has received the end of the stream"});
        end_acknowledged_ = true;
    } else if (up() && !leaving_.empty()) {
        queue_message(current_, bye{leaving_});
        leaving_.clear();
    }
    return std::exchange(out_, {});
}

u64 receiving_side::next_due() const noexcept {
    u64 due = ~u64{0};
    for (const auto& [connection, p] : peers_)
        if (connection != current_) due = std::min(due, p.since_ns + handshake_ns + 1);
    if (current_ != 0) due = std::min({due, ping_ns_, last_received_ns_ + dead_after_ns + 1});
    return due;
}

std::string receiving_side::log_line() { return std::exchange(log_line_, {}); }
std::string receiving_side::warning() { return std::exchange(warning_, {}); }

}  // namespace carousel::hosts
