#include "simulated_link.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "core/clock.hpp"
#include "simulated_stage.hpp"
#include "stages/hosts/link/receiving_side.hpp"
#include "stages/hosts/link/sending_side.hpp"

namespace carousel::test {
namespace {

using namespace carousel::hosts;

constexpr u64 step_ns = ns_per_ms, kept_frames = 12;
constexpr u32 buffers = 4;

hello hello_of(const std::string& run, bool durable) {
    hello h;
    h.run = run;
    h.pipeline = std::string("other");
    h.ring = std::string("source");
    h.format = std::string("{}");
    h.payload_bytes = 100;
    h.by_durable = durable ? 1 : 0;
    return h;
}

class link_between_hosts final : public simulated_link {
public:
    link_between_hosts(observed_run& r, u64 frames, bool durable)
        : run_(&r), on_(r.on), frames_(frames), durable_(durable) {
        start_sender();
        on_->after(step_ns, [this] { step(); });
    }

    bool open(const simulated_process& by, u64 next) override {
        if (receiver_ != nullptr) return receiver_ == &by;
        receiver_ = &by;
        stepped_ns_ = on_->now();
        expected_ = next;
        // its predecessor may have died between the commit and the report of it
        committed_ = std::max(committed_, next);
        in_ = std::make_unique<receiving_side>(hello_of("", durable_), token_, run_->run_id, sender_, next,
                                               buffers);
        return true;
    }
    void close(const simulated_process& by) override {
        if (receiver_ != &by) return;
        receiver_ = nullptr;
        in_.reset();
        arriving_.clear();
        for (auto& [n, w] : wires_) w.open_here = false;
    }
    bool ready(u64 ring_sequence, u64 done_below) override {
        if (ring_sequence != expected_) {
            if (done_below < ring_sequence) return false;
            in_->skip_to(ring_sequence);
            committed_ = std::max(committed_, ring_sequence);
            expected_ = ring_sequence;
        }
        if (end_ && ring_sequence >= *end_) return true;
        const frame_message* const m = in_->whole(ring_sequence);
        if (m == nullptr) return false;
        if (m->hash != ring_sequence * 7)
            run_->violated("the link gives the bytes of another frame for frame " +
                           std::to_string(ring_sequence));
        return true;
    }
    void process(u64 ring_sequence) override { expected_ = ring_sequence + 1; }
    void finish(u64 ring_sequence) override { in_->free_buffer(ring_sequence); }
    [[nodiscard]] std::optional<u64> end() const override { return end_; }
    void committed(u64 ring_sequence) override {
        committed_ = std::max(committed_, ring_sequence + 1);
        in_->committed(ring_sequence + 1);
    }
    void delivered(u64 below) override { in_->durable(below); }
    [[nodiscard]] bool is_durable() const override { return durable_; }

    void lose(u64 for_ns) override {
        switch (on_->below(3)) {
            case 0:
                ++breaks_;
                if (!wires_.empty()) break_wire(wires_.rbegin()->first);
                break;
            case 1:
                ++silences_;
                for (auto& [n, w] : wires_) w.is_silent = true;
                mute_until_ns_ = on_->now() + for_ns;
                break;
            default:
                ++deaths_;
                start_sender();
        }
    }
    [[nodiscard]] std::string text() const override {
        return std::to_string(breaks_) + " broken connections, " + std::to_string(silences_) + " silences, " +
               std::to_string(deaths_) + " deaths of the sender, " + std::to_string(released_) + " of " +
               std::to_string(frames_) + " frames released";
    }

private:
    struct packet {
        u64 due_ns = 0;
        bool is_frame = false;
        message_bytes bytes;
    };
    /// A connection. Its number is this host's.
    struct wire {
        u32 there = 0;  ///< the sender's number
        bool open_there = true, open_here = true;
        bool is_silent = false;  ///< nothing arrives any more
        std::deque<packet> to_there, to_here;
        std::set<u64> reading;  ///< frames whose memory the transport reads
    };

    void start_sender() {
        out_ =
            std::make_unique<sending_side>(hello_of("other-run", durable_), token_, ++incarnations_ << 32U);
        for (auto& [n, w] : wires_) w.open_there = false;
        here_.clear();
        offered_ = released_;
        for (u64 n = released_; n < made_; ++n) offer();
        if (made_ == frames_) out_->end(frames_);
    }
    void offer() {
        out_->begin(offered_);
        frame_message m;
        m.ring_sequence = m.frame_number = offered_;
        m.hash = offered_ * 7;
        m.bytes = m.packed_bytes = 100;
        out_->offer(m);
        ++offered_;
    }
    /// The other run: makes frames while there is room for them, and drops those that are released.
    void work_there() {
        if (made_ < std::min(frames_, released_ + kept_frames) && on_->below(2) == 0) {
            ++made_;
            offer();
            if (made_ == frames_) out_->end(frames_);
        }
        for (; released_ < offered_ && out_->released(released_); ++released_) {
            out_->forget(released_);
            if (released_ >= committed_ || (durable_ && !is_delivered(released_)))
                run_->violated("the other host has released frame " + std::to_string(released_) +
                               ", which this host may still lose");
        }
        if (!out_->failure().empty() && !failed_) {
            failed_ = true;
            run_->violated("the sender fails: " + out_->failure());
        }
    }
    [[nodiscard]] bool is_delivered(u64 frame) const {
        return std::all_of(run_->must_deliver.begin(), run_->must_deliver.end(), [&](const auto& sink) {
            if (frame % sink.second != 0) return true;
            const auto at = run_->delivered.find(sink.first);
            return at != run_->delivered.end() && at->second.count(frame) > 0;
        });
    }

    void step() {
        const u64 now = on_->now();
        carry_out(out_->step(now), true);
        if (in_ && !receiver_->stopped) {
            if (now > stepped_ns_ + 300 * ns_per_ms) in_->exclude(now - stepped_ns_, now);
            stepped_ns_ = now;
            if (in_->end() && in_->end() != end_) end_ = in_->end();
            sender_ = in_->sender();
            in_->sender_is_kept();
            if (in_->end()) in_->end_is_kept();
            carry_out(in_->step(now), false);
        }
        work_there();
        for (auto& [n, w] : wires_) deliver(n, w, now);
        for (auto at = arriving_.begin(); at != arriving_.end();) {
            if (on_->below(2) == 0) {
                ++at;
                continue;
            }
            in_->frame_ends(at->first, true, now);
            at = arriving_.erase(at);
        }
        on_->after(step_ns, [this] { step(); });
    }
    void carry_out(const actions& todo, bool of_sender) {
        for (const action& x : todo) {
            if (x.kind == action::what::connect) {
                connect(x.connection);
                continue;
            }
            const auto known = here_.find(x.connection);
            const u32 n = !of_sender ? x.connection : known != here_.end() ? known->second : 0;
            const auto at = wires_.find(n);
            if (x.kind == action::what::close) {
                if (at != wires_.end()) break_wire(n);
                continue;
            }
            const bool is_frame = x.kind == action::what::send_frame;
            if (at == wires_.end() || !(of_sender ? at->second.open_there : at->second.open_here)) {
                if (is_frame) out_->frame_sent(x.connection, x.ring_sequence);
                continue;
            }
            wire& w = at->second;
            (of_sender ? w.to_here : w.to_there)
                .push_back({on_->now() + on_->below(3 * ns_per_ms), is_frame, x.bytes});
            if (is_frame) w.reading.insert(x.ring_sequence);
        }
    }
    void connect(u32 there) {
        const u64 now = on_->now();
        if (!in_ || now < mute_until_ns_) return out_->closed(there, "no route", now);
        const u32 n = ++last_wire_;
        wires_[n].there = there;
        here_[there] = n;
        in_->accepted(n, now);
    }
    void break_wire(u32 n) {
        wire& w = wires_[n];
        if (std::exchange(w.open_there, false)) {
            for (const u64 frame : std::exchange(w.reading, {})) out_->frame_sent(w.there, frame);
            out_->closed(w.there, "broken", on_->now());
        }
        if (std::exchange(w.open_here, false) && in_) in_->closed(n);
        for (auto at = arriving_.begin(); at != arriving_.end();) {
            if (at->second != n) {
                ++at;
                continue;
            }
            in_->frame_ends(at->first, false, on_->now());
            at = arriving_.erase(at);
        }
    }
    void deliver(u32 n, wire& w, u64 now) {
        if (w.open_there && !w.open_here && !w.is_silent) return break_wire(n);
        while (!w.is_silent && w.open_there && !w.to_there.empty() && w.to_there.front().due_ns <= now) {
            const packet p = std::move(w.to_there.front());
            w.to_there.pop_front();
            out_->received(w.there, *decode(p.bytes), now);
        }
        while (!w.is_silent && in_ && !receiver_->stopped && w.open_here && !w.to_here.empty() &&
               w.to_here.front().due_ns <= now) {
            const packet p = std::move(w.to_here.front());
            w.to_here.pop_front();
            const message m = *decode(p.bytes);
            if (!p.is_frame) {
                in_->received(n, m, now);
                continue;
            }
            const auto& f = std::get<frame_message>(m);
            if (w.open_there && w.reading.erase(f.ring_sequence) > 0)
                out_->frame_sent(w.there, f.ring_sequence);
            if (const auto buffer = in_->frame_begins(n, f, now)) arriving_[*buffer] = n;
        }
    }

    observed_run* run_;
    machine* on_;
    u64 frames_;
    bool durable_, failed_ = false;
    token_file token_{"a secret that both hosts know"};
    std::unique_ptr<sending_side> out_;
    std::unique_ptr<receiving_side> in_;
    const simulated_process* receiver_ = nullptr;
    u64 stepped_ns_ = 0, expected_ = 0, committed_ = 0;
    std::string sender_;  ///< stored on this host's disk, as is the end
    std::optional<u64> end_;
    u64 made_ = 0, offered_ = 0, released_ = 0, incarnations_ = 0, mute_until_ns_ = 0;
    u64 breaks_ = 0, silences_ = 0, deaths_ = 0;
    u32 last_wire_ = 0;
    std::map<u32, wire> wires_;
    std::map<u32, u32> here_;      ///< the sender's number of a connection -> this host's
    std::map<u32, u32> arriving_;  ///< buffer -> connection
};

}  // namespace

std::unique_ptr<simulated_link> make_simulated_link(observed_run& r, u64 frames, bool durable) {
    return std::make_unique<link_between_hosts>(r, frames, durable);
}

}  // namespace carousel::test
