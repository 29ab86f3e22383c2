// Whole sequences on a link between two hosts that both know the token, when messages are delayed, repeated,
// reordered, lost or changed, connections break and either process dies. Input: a program of steps, each a
// byte that selects the step and its parameters (see step()). So an input reaches states that need many
// valid messages first, and changes one field of one of them.
//
// Holds for every program: neither side answers with a flood, no buffer has two writers, and a frame that the
// receiver gives has a number within its window. Holds unless a message was changed or made up: the sender
// releases only frames that are committed, and no side fails.
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "hosts/seal.hpp"
#include "stages/hosts/link/receiving_side.hpp"
#include "stages/hosts/link/sending_side.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace carousel {
namespace {

using namespace hosts;
using test::require;

constexpr u64 most_actions = 20'000, most_steps = 600, window = 4, frames = 40;

hello hello_of(const std::string& run, bool durable) {
    hello h;
    h.run = run;
    h.format = "{}";
    h.payload_bytes = 64;
    h.by_durable = durable ? 1 : 0;
    return h;
}

struct packet {
    bool is_frame = false;
    message content;
};

class sequence {
public:
    explicit sequence(bool durable) : durable_(durable) { start_sender(), start_receiver(); }

    void step(test::bytes& in) {
        const u8 what = in.number<u8>();
        switch (what % 16) {
            case 0:
            case 1:
            case 2:
                now_ += in.number<u8>() * 100'000ULL;
                break;
            case 3:  // time that ends patience
                now_ += in.number<u8>() * 20'000'000ULL;
                break;
            case 4:
            case 5:
                deliver(to_receiver_, false);
                break;
            case 6:
            case 7:
                deliver(to_sender_, true);
                break;
            case 8:
                take_and_commit(in.number<u8>());
                break;
            case 9:
                end_arrival(in.number<u8>());
                break;
            case 10:
                disconnect();
                break;
            case 11:
                in.number<u8>() % 2 == 0 ? start_sender() : start_receiver();
                break;
            case 12:
                reorder(in);
                break;
            case 13:
                change(in);
                break;
            case 14:
                make_up(in);
                break;
            default:
                in_->durable(durable_ ? committed_ : in.number<u8>());
        }
        turn();
    }

private:
    void start_sender() {
        disconnect();
        out_ = std::make_unique<sending_side>(hello_of("a", durable_), token_, ++incarnations_ << 32U);
        offered_ = released_;
    }
    void start_receiver() {
        disconnect();
        arriving_.clear();
        in_ = std::make_unique<receiving_side>(hello_of("", durable_), token_, "b", sender_, committed_,
                                               window);
        given_ = committed_;
    }
    void disconnect() {
        if (there_ == 0) return;
        for (const u64 n : std::exchange(reading_, {})) out_->frame_sent(there_, n);
        out_->closed(std::exchange(there_, 0), "broken", now_);
        in_->closed(here_);
        for (const auto& [buffer, connection] : std::exchange(arriving_, {}))
            in_->frame_ends(buffer, false, now_);
        to_sender_.clear(), to_receiver_.clear();
    }

    void turn() {
        if (offered_ < std::min(frames, released_ + window)) {
            out_->begin(offered_);
            frame_message m;
            m.ring_sequence = offered_;
            m.hash = offered_ * 7;
            m.bytes = m.packed_bytes = 64;
            out_->offer(m);
            if (++offered_ == frames) out_->end(frames);
        }
        for (; released_ < offered_ && out_->released(released_); ++released_) {
            require(is_forged_ || released_ < committed_, "only committed frames are released");
            out_->forget(released_);
        }
        require(is_forged_ || out_->failure().empty(), "no side fails");
        sender_ = in_->sender();
        in_->sender_is_kept();
        if (in_->end()) in_->end_is_kept();
        carry_out(out_->step(now_), true);
        carry_out(in_->step(now_), false);
    }
    void carry_out(const actions& todo, bool of_sender) {
        actions_ += todo.size();
        for (const action& a : todo) {
            if (a.kind == action::what::connect) {
                disconnect();
                there_ = a.connection;
                in_->accepted(++here_, now_);
            } else if (a.connection != (of_sender ? there_ : here_) || there_ == 0) {
                if (a.kind == action::what::send_frame) out_->frame_sent(a.connection, a.ring_sequence);
            } else if (a.kind == action::what::close) {
                disconnect();
            } else {
                const auto m = decode(a.bytes);
                require(m.has_value(), "a side sends messages that can be read");
                const bool is_frame = a.kind == action::what::send_frame;
                if (is_frame) reading_.insert(a.ring_sequence);
                (of_sender ? to_receiver_ : to_sender_).push_back({is_frame, *m});
            }
        }
        require(actions_ < most_actions, "a side answers with no flood");
    }
    void deliver(std::deque<packet>& from, bool to_sender) {
        if (from.empty() || there_ == 0) return;
        const packet p = from.front();
        from.pop_front();
        if (to_sender) return out_->received(there_, p.content, now_);
        const auto* const f = std::get_if<frame_message>(&p.content);
        if (f == nullptr || !p.is_frame) return in_->received(here_, p.content, now_);
        if (reading_.erase(f->ring_sequence) > 0) out_->frame_sent(there_, f->ring_sequence);
        if (const auto buffer = in_->frame_begins(here_, *f, now_)) {
            require(*buffer < window && arriving_.count(*buffer) == 0, "a buffer has one writer");
            arriving_[*buffer] = here_;
        }
    }
    void end_arrival(u8 how) {
        if (arriving_.empty()) return;
        const u32 buffer = arriving_.begin()->first;
        arriving_.erase(arriving_.begin());
        in_->frame_ends(buffer, how % 4 != 0, now_);
    }
    void take_and_commit(u8 how) {
        if (const frame_message* const m = in_->whole(given_); m != nullptr && given_ < committed_ + window) {
            require(m->ring_sequence == given_, "a buffer holds the frame of its number");
            require(is_forged_ || m->hash == given_ * 7, "a frame has its own bytes");
            if (how % 8 == 7) return in_->damaged(given_, now_);
            ++given_;
        }
        if (committed_ < given_ && how % 2 == 0) {
            in_->free_buffer(committed_);
            in_->committed(++committed_);
            if (durable_) in_->durable(committed_);
        }
    }

    std::deque<packet>& queue(u8 which) { return which % 2 == 0 ? to_receiver_ : to_sender_; }
    /// Repeats, drops or exchanges messages in flight: a transport does not do this, a malicious peer can.
    void reorder(test::bytes& in) {
        std::deque<packet>& q = queue(in.number<u8>());
        const u8 how = in.number<u8>();
        if (q.size() < 2) return;
        is_forged_ = true;
        if (how % 3 == 0)
            std::swap(q[0], q[how / 3U % q.size()]);
        else if (how % 3 == 1 && q.size() < 64)
            q.push_back(q[how / 3U % q.size()]);
        else
            q.pop_front();
    }
    /// Changes one field of a message in flight.
    void change(test::bytes& in) {
        std::deque<packet>& q = queue(in.number<u8>());
        const u8 at = in.number<u8>(), field = in.number<u8>();
        const u64 value = value_of(in);
        if (q.empty()) return;
        is_forged_ = true;
        message& m = q[at % q.size()].content;
        if (auto* const f = std::get_if<frame_message>(&m)) {
            u64* const fields[] = {&f->epoch,   &f->ring_sequence, &f->hash,         &f->bytes,
                                   &f->born_ns, &f->packed_bytes,  &f->frame_number, &f->parameter_number};
            *fields[field % std::size(fields)] = value;
        } else if (auto* const w = std::get_if<welcome>(&m)) {
            u64* const fields[] = {&w->committed, &w->durable, &w->next};
            *fields[field % std::size(fields)] = value;
            if (field % 4 == 3) w->window = static_cast<u32>(value);
        } else if (auto* const a = std::get_if<ack>(&m)) {
            (field % 2 == 0 ? a->committed : a->durable) = value;
        } else if (auto* const h = std::get_if<hello>(&m)) {
            u64* const fields[] = {&h->epoch, &h->oldest, &h->begins, &h->payload_bytes};
            *fields[field % std::size(fields)] = value;
            if (field % 8 == 7) h->kind = static_cast<u8>(value);
        } else if (auto* const p = std::get_if<pong>(&m)) {
            (field % 2 == 0 ? p->sent_ns : p->here_ns) = value;
        } else if (auto* const e = std::get_if<stream_end>(&m)) {
            e->ring_sequence = value;
        }
    }
    /// Adds a message that the peer did not send at this point.
    void make_up(test::bytes& in) {
        const u8 kind = in.number<u8>();
        std::deque<packet>& q = queue(kind);
        const u64 value = value_of(in);
        if (q.size() > 64) return;
        is_forged_ = true;
        switch (kind / 2U % 8) {
            case 0:
                q.push_back({false, ack{value, in.number<u8>()}});
                break;
            case 1:
                q.push_back({false, stream_end{value}});
                break;
            case 2:
                q.push_back({false, welcome{"b", value, 0, value, static_cast<u32>(window)}});
                break;
            case 3:
                q.push_back({false, bye{"no reason"}});
                break;
            case 4:
                q.push_back({false, refuse{"no reason"}});
                break;
            case 5:
                q.push_back({false, pong{value, in.number<u64>()}});
                break;
            case 6:
                q.push_back({false, hello_of("c", !durable_)});
                break;
            default: {
                frame_message m;
                m.ring_sequence = value;
                m.bytes = m.packed_bytes = 64;
                q.push_back({true, m});
            }
        }
    }
    /// Small numbers, numbers near a limit, and any number.
    u64 value_of(test::bytes& in) {
        const u8 kind = in.number<u8>();
        if (kind % 4 == 0) return in.number<u64>();
        if (kind % 4 == 1) return ~u64{0} - in.number<u8>();
        return in.number<u8>();
    }

    bool durable_, is_forged_ = false;
    token_file token_{"0123456789abcdef"};
    std::unique_ptr<sending_side> out_;
    std::unique_ptr<receiving_side> in_;
    u64 now_ = 1'000'000'000, incarnations_ = 0, actions_ = 0;
    u64 offered_ = 0, released_ = 0, given_ = 0, committed_ = 0;
    u32 there_ = 0, here_ = 0;  ///< the present connection, by the sender's and the receiver's number
    std::string sender_;
    std::deque<packet> to_sender_, to_receiver_;
    std::set<u64> reading_;
    std::map<u32, u32> arriving_;
};

}  // namespace
}  // namespace carousel

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace carousel;
    if (!hosts::can_seal()) return 0;
    test::bytes in(data, size);
    sequence s((in.number<u8>() & 1U) != 0);
    for (u64 k = 0; k < most_steps && in.left() > 0; ++k) s.step(in);
    return 0;
}
