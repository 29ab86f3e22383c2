#include "histories.hpp"

#include <map>

#include "ipc/gate.hpp"
#include "zeroed.hpp"

namespace carousel::test {
namespace {

using namespace carousel::ipc;

constexpr u64 slack_ns = 30'000'000'000;  // until the holder has had its turn, under any death

// A stream of one incarnation, which waits for a permit repeatedly. Host functions, the thread and kernels
// are operations of that incarnation, in any order that the stream and the mutex permit.
struct one_stream {
    enum part : u8 { none, to_request, at_gate, inside, outside, to_release };
    part at = none;
    bool requested = false;  // its thread is processing it
    bool handle = false;     // some process will release it
    bool stalled = false;    // its thread does nothing any more
    bool excused = false;    // the wait was abandoned when it was granted: its kernels are not checked
    gate_wait w;
};

struct record {
    std::map<u32, one_stream> of;  // slot -> its stream; it has the gates of that row
    std::map<u32, u32> epoch;      // slot -> its incarnation
};

bool has_permit(semaphore_block& b, u32 epoch) {
    for (u32 k = 0; k < b.permits; ++k)
        if (const permit_word w = permit_word::of(load(b.permit()[k]));
            w.state == permit_state::held && w.epoch == epoch)
            return true;
    return false;
}

// Conditions for all streams after any step.
void check(history& h, record& r, semaphore_block& b) {
    u32 within = 0;
    for (auto& [slot, s] : r.of) {
        if (s.at == one_stream::inside && !s.excused) {
            ++within;
            if (!has_permit(b, r.epoch[slot])) h.find("kernels run without a permit");
        }
        if (s.at != one_stream::at_gate && s.at != one_stream::to_request) continue;
        const u32 now = s.w.gate->at.load();
        const bool mine = now >> 2U == s.w.generation;
        const bool by_holder = mine && state_of(now) == gate_state::closed && !s.w.decided;
        if (by_holder && (s.at == one_stream::to_request || h.clock_ns() <= s.w.deadline_ns))
            h.find("a gate was closed before its time");
        if (mine && s.at == one_stream::at_gate && state_of(now) == gate_state::pending &&
            h.clock_ns() > s.w.deadline_ns + gate_grace_ns + slack_ns)
            h.find("a stream waits indefinitely");
    }
    if (within > b.permits) h.find("a permit is out twice");
}

// The kernels after the gate: the first one checks, and so does the last one.
void run_kernels(history& h, one_stream& s, u64& done) {
    const bool yes = state_of(s.w) == gate_state::granted;
    if (s.at == one_stream::at_gate) {
        if (state_of(s.w) == gate_state::pending) return;
        s.at = yes ? one_stream::inside : one_stream::outside;
        return;
    }
    if (!s.excused && yes != (s.at == one_stream::inside)) h.find("two kernels are told different things");
    done += s.at == one_stream::inside ? 1U : 0U;
    s.at = s.handle ? one_stream::to_release : one_stream::none;
}

void one_operation(history& h, incarnation& l, one_stream& s, gate_row& row, semaphore_block& b, u64& done) {
    const semaphore line(b, l.epoch);
    switch (l.below(6)) {
        case 0:
            if (s.at != one_stream::none || s.requested || s.handle) return;
            s.w = {}, s.excused = false;
            s.w.gate = &row.of[0];
            open(s.w);
            s.at = one_stream::to_request, s.handle = true;
            return;
        case 1:
            if (s.at != one_stream::to_request) return;
            s.at = one_stream::at_gate, s.requested = true, s.stalled = l.below(24) == 0;
            request_permit(s.w, clock_ns() + 200'000'000 * (1 + l.below(20)));
            return;
        case 2: {
            if (!s.requested || s.stalled || l.below(4) != 0) return;  // others are faster now and then
            const u64 now = clock_ns(), left = s.w.deadline_ns > now ? s.w.deadline_ns - now : 0;
            const auto got = semaphore(b, l.epoch).acquire(l.below(2) * left);
            if (!got && clock_ns() < s.w.deadline_ns) return;
            decide(s.w, line, got);
            s.requested = false;
            return;
        }
        case 3:
            if (s.at != one_stream::to_release) return;
            s.at = one_stream::none, s.handle = false;
            drop(s.w, line);
            return;
        case 4:
            if (!s.handle || s.at == one_stream::to_release || l.below(12) != 0) return;
            s.handle = false, s.excused = s.w.decided;
            drop(s.w, line);
            return;
        default:
            if (s.at >= one_stream::at_gate && s.at <= one_stream::outside) run_kernels(h, s, done);
    }
}

}  // namespace

bool gate_history(history& h, u64 seed, u64& done) {
    h.each_step_takes(20'000'000);  // deadlines and the holder's second are over within a history
    const u32 permits = 1 + static_cast<u32>(seed % 2);
    zeroed<semaphore_block> b(semaphore_block::bytes(permits, 8));
    b->make(permits, 8);
    zeroed<gate_row> rows(sizeof(gate_row) * 8);
    gate_row* const row = &*rows;
    record r;
    h.observe = [&](step) { check(h, r, *b); };
    h.died = [&](const incarnation& l) { r.of.erase(l.slot); };
    h.repair = [&](u32 dead) { repair(*b, dead); };
    h.rounds = [&] {
        for (u32 k = 0; k < 7; ++k) close_overdue(row[k], clock_ns());
    };
    h.client = [&](incarnation& l) {
        r.epoch[l.slot] = l.epoch;
        one_operation(h, l, r.of[l.slot], row[l.slot], *b, done);
        check(h, r, *b);
    };
    const bool ended = h.run();
    if (!ended || !h.finding().empty()) return ended;
    for (auto& [slot, s] : r.of) {  // live incarnations finish
        const semaphore line(*b, r.epoch[slot]);
        if (s.w.gate == nullptr) continue;
        if (!s.w.dropped) drop(s.w, line);
        if (s.requested) decide(s.w, line, std::nullopt);
    }
    if (semaphore(*b, 0).free_permits() != permits) h.find("a permit is gone");
    return ended;
}

}  // namespace carousel::test
