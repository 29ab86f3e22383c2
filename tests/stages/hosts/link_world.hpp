#pragma once
// A link without a network: both sides over queues, with a simulated clock, where connections break, packets
// are delayed, processes die and bytes are changed, by a seed. The invariants are checked at every step.

#include <deque>
#include <memory>
#include <random>
#include <set>

#include "stages/hosts/link/receiving_side.hpp"
#include "stages/hosts/link/sending_side.hpp"
#include "tests/support/catch.hpp"

namespace carousel::test {

using namespace carousel::hosts;

inline hello hello_of_test(std::string run = "run-a") {
    hello h;
    h.run = std::move(run);
    h.pipeline = std::string("a");
    h.ring = std::string("source");
    h.format = std::string("{}");
    h.payload_bytes = 100;
    return h;
}

/// A sender that has sent HELLO to `b` over connection 1, and the last messages.
struct introduced {
    sending_side a;
    actions sent;
    u32 connection = 0;
    introduced(receiving_side& b, hello own_hello, const token_file& token, u64 now)
        : a(std::move(own_hello), token, 0) {
        a.begin(0);
        connect(b, now);
    }
    void connect(receiving_side& b, u64 now) {
        b.accepted(++connection, now);
        for (int k = 0; k < 4; ++k) {
            sent = a.step(now);
            for (const action& x : sent)
                if (x.kind == action::what::send) b.received(connection, *decode(x.bytes), now);
            for (const action& x : b.step(now))
                if (x.kind == action::what::send) a.received(connection, *decode(x.bytes), now);
            b.sender_is_kept();
        }
    }
    void connect(receiving_side&& b, u64 now) { connect(b, now); }
};

inline receiving_side receiver(const token_file& token, const std::string& sender = "", u64 next = 0,
                               const hello& expected = hello_of_test()) {
    return {expected, token, "run-b", sender, next, 4};
}

struct world {
    struct packet {
        bool frame = false;
        message_bytes bytes;
        bool damaged = false;
    };
    /// A connection, the same number on both sides.
    struct wire {
        u32 number = 0;  ///< the sender's number
        bool open_a = true, open_b = true;
        std::deque<packet> to_a, to_b;
        std::set<u64> reading;  ///< frames whose memory the transport reads
    };

    explicit world(u64 seed) : dice(seed) { start_sender(), start_receiver(); }

    std::mt19937_64 dice;
    u64 now = 1'000'000'000;
    token_file token{"a secret that both sides know"};
    u64 frames = 60, released = 0;  ///< on A: every frame below is committed there
    u64 begun = 0, committed = 0;   ///< on B: begun by this process; committed permanently
    u64 incarnations = 0, silent_until = 0;
    std::unique_ptr<sending_side> a;
    std::unique_ptr<receiving_side> b;
    std::map<u32, wire> wires;  ///< by the number at B, which grows forever
    std::map<u32, u32> at_b;    ///< by this sender's number
    u32 next_wire = 1;
    std::map<u32, std::pair<u32, bool>> arriving;  ///< buffer -> wire at B, damaged
    std::set<u64> damaged;                         ///< frames whose bytes are not those of their hash
    u64 given = 0;                                 ///< frames that this sender has begun
    std::optional<u64> kept_end;                   ///< stored by B on its disk
    u32 window = 4;

    u64 below(u64 n) { return std::uniform_int_distribution<u64>(0, n - 1)(dice); }

    void start_sender() {
        a = std::make_unique<sending_side>(hello_of_test(), token, ++incarnations << 32U);
        for (auto& [n, w] : wires) w.open_a = false;
        at_b.clear();
        given = released;
    }
    void start_receiver() {
        arriving.clear(), damaged.clear();
        b = std::make_unique<receiving_side>(hello_of_test(), token, "run-b", "run-a", committed, window);
        for (auto& [n, w] : wires) w.open_b = false;
        begun = committed;
    }
    void break_wire(u32 n) {
        wire& w = wires[n];
        if (std::exchange(w.open_a, false)) {
            for (const u64 s : std::exchange(w.reading, {})) a->frame_sent(w.number, s);
            a->closed(w.number, "broken", now);
        }
        if (std::exchange(w.open_b, false)) b->closed(n);
        end_arrivals(n);
    }
    void end_arrivals(u32 n) {
        for (auto at = arriving.begin(); at != arriving.end();) {
            if (at->second.first != n) {
                ++at;
                continue;
            }
            b->frame_ends(at->first, false, now);
            at = arriving.erase(at);
        }
    }
    void carry_out(const actions& todo, bool of_a) {
        for (const action& x : todo) {
            if (x.kind == action::what::connect) {
                const u32 n = next_wire++;
                wires[n].number = x.connection;
                at_b[x.connection] = n;
                b->accepted(n, now);
                continue;
            }
            const u32 n = of_a ? (at_b.count(x.connection) ? at_b[x.connection] : 0) : x.connection;
            if (n == 0 || wires.count(n) == 0) continue;
            wire& w = wires[n];
            if (x.kind == action::what::close) {
                break_wire(n);
            } else if (of_a ? w.open_a : w.open_b) {
                const bool frame = x.kind == action::what::send_frame;
                (of_a ? w.to_b : w.to_a).push_back({frame, x.bytes, frame && below(40) == 0});
                if (frame) w.reading.insert(x.ring_sequence);
            } else if (x.kind == action::what::send_frame) {
                a->frame_sent(x.connection, x.ring_sequence);
            }
        }
    }
    void deliver(u32 n) {
        wire& w = wires[n];
        if (!w.to_a.empty() && below(2) == 0) {
            const packet p = w.to_a.front();
            w.to_a.pop_front();
            if (w.open_a) a->received(w.number, *decode(p.bytes), now);
        } else if (!w.to_b.empty()) {
            const packet p = w.to_b.front();
            w.to_b.pop_front();
            const message m = *decode(p.bytes);
            if (!p.frame) {
                if (w.open_b) b->received(n, m, now);
                return;
            }
            const auto& f = std::get<frame_message>(m);
            if (w.open_a && w.reading.erase(f.ring_sequence) > 0) a->frame_sent(w.number, f.ring_sequence);
            if (!w.open_b) return;
            if (const auto buffer = b->frame_begins(n, f, now)) {
                REQUIRE(arriving.count(*buffer) == 0);  // one writer per buffer at a time
                arriving[*buffer] = {n, p.damaged};
                if (p.damaged)
                    damaged.insert(f.ring_sequence);
                else
                    damaged.erase(f.ring_sequence);
            }
        }
    }
    void stage_of_a() {
        if (given < std::min(frames, released + window)) {
            a->begin(given);
            frame_message m;
            m.ring_sequence = given;
            m.hash = given * 7;
            m.bytes = m.packed_bytes = 100;
            a->offer(m);
            ++given;
        }
        if (released < given && a->released(released)) {
            CHECK(released < committed);  // nothing is released here that is not committed there
            for (const auto& [n, w] : wires) CHECK((!w.open_a || w.reading.count(released) == 0));
            a->forget(released++);
        }
        if (released == frames) a->end(frames);
    }
    void stage_of_b() {
        if (const frame_message* m = b->whole(begun)) {
            CHECK(m->hash == begun * 7);
            if (damaged.count(begun) > 0) {
                damaged.erase(begun);
                b->damaged(begun, now);
            } else if (begun < committed + 2) {
                ++begun;
            }
        }
        if (committed < begun && below(3) == 0) {
            b->free_buffer(committed);
            b->committed(++committed);
        }
        if (b->end()) kept_end = b->end(), b->end_is_kept();
        b->sender_is_kept();
    }
    void step() {
        now += below(2'000'000);
        CHECK(a->failure() == "");
        carry_out(a->step(now), true);
        carry_out(b->step(now), false);
        stage_of_a();
        stage_of_b();
        if (!arriving.empty() && below(2) == 0) {
            const u32 buffer = arriving.begin()->first;
            arriving.erase(buffer);
            b->frame_ends(buffer, true, now);
        }
        if (now >= silent_until && !wires.empty()) {
            std::vector<u32> all;
            for (const auto& [n, w] : wires)
                if (!w.to_a.empty() || !w.to_b.empty()) all.push_back(n);
            for (int k = 0; k < 4 && !all.empty(); ++k) deliver(all[below(all.size())]);
        }
    }
    /// Steps until the sender knows that its end has been received, with faults at intervals.
    void run(u64 fault_every) {
        for (u64 k = 0; k < 400'000; ++k) {
            step();
            if (a->end_known()) return;
            if (below(fault_every) != 0) continue;
            switch (below(4)) {
                case 0:
                    if (released < frames) start_sender();
                    break;
                case 1:
                    start_receiver();
                    break;
                case 2:
                    silent_until = now + below(2'000'000'000);
                    break;
                default:
                    if (!wires.empty()) break_wire(wires.rbegin()->first);
            }
        }
        FAIL("the frames did not come through: " << released << " of " << frames << " released, " << committed
                                                 << " committed");
    }
};

}  // namespace carousel::test
