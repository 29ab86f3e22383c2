#include "stages/hosts/link/sending_side.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/running_time.hpp"
#include "hosts/seal.hpp"

namespace carousel::hosts {

sending_side::sending_side(hello own_hello, token_file token, u64 first_epoch)
    : own_hello_(std::move(own_hello)),
      token_(std::move(token)),
      first_epoch_(first_epoch),
      epoch_(first_epoch) {}

void sending_side::begin(u64 ring_sequence) {
    if (!oldest_) oldest_ = committed_ = durable_ = next_ = ring_sequence;
    frames_[ring_sequence];
}

void sending_side::offer(const frame_message& m) {
    kept& f = frames_[m.ring_sequence];
    f.message = m;
    f.whole = true;
}

bool sending_side::released(u64 ring_sequence) const {
    const auto at = frames_.find(ring_sequence);
    return ring_sequence < kept_from() && (at == frames_.end() || at->second.under_way == 0);
}

bool sending_side::is_idle(u64 ring_sequence) const {
    const auto at = frames_.find(ring_sequence);
    return at == frames_.end() || at->second.under_way == 0;
}

void sending_side::drop(const std::string& why, u64 now) {
    if (state_ == state::disconnected) return;
    disconnect_reason_ = why;
    state_ = state::disconnected;
    to_close_ = connection_;
    close_ = true;
    proven_ = false;
    retry_ns_ = now + rest_ns_;
    rest_ns_ = std::min(2 * rest_ns_, longest_rest_ns);
}

void sending_side::closed(u32 connection, const std::string& why, u64 now) {
    if (connection == connection_) drop(why, now);
}

void sending_side::frame_sent(u32 connection, u64 ring_sequence) {
    (void)connection;
    const auto at = frames_.find(ring_sequence);
    if (at != frames_.end() && at->second.under_way > 0) --at->second.under_way;
}

void sending_side::received(u32 connection, const message& m, u64 now) {
    if (connection != connection_ || state_ == state::disconnected) return;
    last_received_ns_ = now;
    if (const auto* p = std::get_if<proof_message>(&m); p != nullptr && state_ == state::hello_sent) {
        take(*p, now);
    } else if (const auto* h = std::get_if<hello>(&m);
               h != nullptr && state_ == state::hello_sent && h->version != own_hello_.version) {
        // The peer has not proven that it has the token. It may be any process, so it must not be able to end
        // the run.
        drop(fmt::format("the other side uses version {} of the link protocol, but this side uses version "
                         "{}: use the same "
                         "build on both hosts",
                         h->version, own_hello_.version),
             now);
        retry_ns_ = now + other_version_rest_ns;
    } else if (const auto* w = std::get_if<welcome>(&m); w != nullptr && state_ == state::proof_sent) {
        take(*w, now);
    } else if (const auto* r = std::get_if<refuse>(&m)) {
        // A peer that has not proven that it has the token may be any process, so it must not be able to end
        // the run.
        if (proven_)
            failure_ = r->why;
        else
            drop("it refuses the link, but has not proved that it has the token: " + r->why, now);
    } else if (const auto* b = std::get_if<bye>(&m); b != nullptr && proven_) {
        end_known_ = end_known_ || end_sent_;
        drop(b->why, now);
        retry_ns_ = now + longest_rest_ns;
    } else if (state_ == state::up) {
        if (const auto* a = std::get_if<ack>(&m)) {
            committed_ = std::max(committed_, std::min(a->committed, next_));
            durable_ = std::max(durable_, std::min(a->durable, committed_));
        }
        if (const auto* q = std::get_if<ping>(&m)) queue_message(answers_, pong{q->sent_ns, now});
        if (const auto* q = std::get_if<pong>(&m)) clock_.answered(q->sent_ns, q->here_ns, now);
    }
}

void sending_side::take(const proof_message& m, u64 now) {
    if (!token_.fits(m.of_token, side::receiving, own_hello_, m.fresh))
        return drop("the process there has another token for this link (the two token files differ)", now);
    proven_ = true;
    queue_message(answers_, proof_message{own_hello_.fresh, token_.prove(side::sending, own_hello_, m.fresh),
                                          m.sent_ns, now});
    state_ = state::proof_sent;
}

// This side does not keep frames that were answered. If a receiver requests such frames again, the receiver
// has lost its ring, and the receiver's numbering restarts.
void sending_side::take_numbers(const welcome& m) {
    if (!oldest_) {
        oldest_ = m.next;
        remote_run_ = m.run;
    } else {
        bool continues = m.run == remote_run_ && m.next >= *oldest_ && m.next <= next_;
        for (u64 n = m.next; continues && n < next_; ++n) continues = frames_.count(n) != 0;
        if (!continues) {
            numbering_restarted_ = true;
            failure_ = fmt::format(
                "the other host has restarted: run {} continues at frame {} of its ring, but run {} ended at "
                "frame {}",
                m.run, m.next, remote_run_, next_);
            return;
        }
    }
    durable_ = m.durable;
    committed_ = m.committed;
    next_ = m.next;
    enter_up(m);
}

/// Frames below the returned number may be on the receiver. A process has no record of its predecessors, or
/// of a lost run that it continues, so the number is first taken from the first WELCOME. Later the number
/// also covers the frames that this process has sent, and the frames that a restarting durable host may omit
/// (receiving_side::may_leave_out).
u64 sending_side::may_have_arrived() const noexcept {
    return own_hello_.by_durable != 0 ? std::max(highest_next_, kept_from() + most_durable_under_way)
                                      : highest_next_;
}

void sending_side::take(const welcome& m, u64 now) {
    if (is_work()) return take_numbers(m);
    const u64 claimed = std::max(m.next, m.committed);
    if (welcomed_ && claimed > may_have_arrived()) {
        drop(fmt::format(
                 "the receiving host (run {}) reports that it has the frames below {}, but this side "
                 "has sent only those below {}, so the program there belongs to another stream. No frame is "
                 "released. End that program, and start the receiver of this stream",
                 m.run, claimed, highest_next_),
             now);
        retry_ns_ = now + longest_rest_ns;
        return;
    }
    if (oldest_ && m.next < kept_from()) {
        if (own_hello_.by_durable != 0) {
            drop(fmt::format("the receiving host (run {0}) has lost its ring, and begins at frame {1}. The "
                             "frames below {2} are in its sinks' files, the others are kept here: end the "
                             "receiving run, and start it with --first {2}",
                             m.run, m.next, durable_),
                 now);
            return;
        }
        failure_ = fmt::format(
            "the receiving host (run {}) continues at frame {}, but frames {} to {} were committed there and "
            "released here: {} frames are lost. Its ring was lost or rebuilt: end both runs and start again",
            m.run, m.next, m.next, committed_ - 1, committed_ - m.next);
        return;
    }
    durable_ = std::max(durable_, std::min(m.durable, m.committed));
    // If a frame was committed on the receiving host but is not on that host's disk, it may be lost with the
    // host's ring; this side still has such frames.
    committed_ = std::max(kept_from(), m.committed);
    next_ = claimed;
    highest_next_ = std::max(highest_next_, next_);
    welcomed_ = true;
    enter_up(m);
}

void sending_side::enter_up(const welcome& m) {
    window_ = std::max(m.window, 1U);
    end_sent_ = false;
    state_ = state::up;
    rest_ns_ = shortest_rest_ns;
    disconnect_reason_.clear();
}

void sending_side::queue_message(actions& out, const message& m) {
    out.push_back({action::what::send, connection_, encode(m)});
}

void sending_side::connect(actions& out, u64 now) {
    ++connection_;
    own_hello_.epoch = ++epoch_;
    own_hello_.oldest = kept_from();
    own_hello_.fresh = fresh_bytes();
    state_ = state::hello_sent;
    since_ns_ = last_received_ns_ = ping_ns_ = now;
    clock_.forget();
    out.push_back({action::what::connect, connection_});
    queue_message(out, own_hello_);
}

void sending_side::send_frames(actions& out) {
    while (next_ < committed_ + window_) {
        const auto at = frames_.find(next_);
        if (at == frames_.end() || !at->second.whole) return;
        at->second.message.epoch = epoch_;
        ++at->second.under_way;
        out.push_back({action::what::send_frame, connection_, encode(at->second.message), next_});
        highest_next_ = std::max(highest_next_, ++next_);
    }
}

void sending_side::exclude(u64 ns, u64 now) noexcept {
    for (u64* const start : {&since_ns_, &last_received_ns_}) *start = later_by_gap(*start, ns, now);
}

actions sending_side::step(u64 now) {
    actions out;
    if (!failure_.empty()) return out;
    if ((state_ == state::hello_sent || state_ == state::proof_sent) && now - since_ns_ > handshake_ns)
        drop("it does not answer", now);
    if (state_ == state::up && now > last_received_ns_ && now - last_received_ns_ > dead_after_ns)
        drop(fmt::format("it sent nothing for {} ms", dead_after_ns / ns_per_ms), now);
    if (close_) out.push_back({action::what::close, to_close_});
    if (close_) answers_.clear();
    close_ = false;
    out.insert(out.end(), answers_.begin(), answers_.end());
    answers_.clear();
    const bool wanted = (oldest_ || end_ || is_work()) && !end_known_;
    if (state_ == state::disconnected && wanted && now >= retry_ns_) connect(out, now);
    if (state_ != state::up) return out;
    send_frames(out);
    if (now >= ping_ns_) {
        queue_message(out, ping{now});
        ping_ns_ = now + ping_rest_ns(clock_.answers());
    }
    if (ends_here_ && !end_) end_ = next_;
    if (end_ && !end_sent_ && committed_ >= *end_) {
        queue_message(out, stream_end{*end_});
        end_sent_ = true;
    }
    return out;
}

u64 sending_side::next_due() const noexcept {
    if (state_ == state::disconnected) return retry_ns_;
    if (state_ != state::up) return since_ns_ + handshake_ns + 1;
    return std::min(ping_ns_, last_received_ns_ + dead_after_ns + 1);
}

}  // namespace carousel::hosts
