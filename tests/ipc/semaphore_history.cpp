#include "histories.hpp"

#include <map>
#include <set>

#include "ipc/semaphore.hpp"
#include "zeroed.hpp"

namespace carousel::test {
namespace {

using namespace carousel::ipc;

// The knowledge of the clients themselves: which client has which permit, and which clients are in the queue.
struct record {
    std::map<u32, u32> owner;  // permit index -> epoch, from its grant to just before its release
    std::map<u32, std::optional<permit>> held;  // epoch -> what it holds between deeds
    std::map<u32, u64> joined;                  // epoch -> when it came into the line; none once it has one
    std::set<u32> passed;                       // clients that were skipped and have not joined again
    u64 joins = 0;
    bool late = false;  // one of them has taken a permit anyway: from there on no order is required
};

// A client has moved a place on: find the ticket that left the line.
void on_passed(record& r, semaphore_block& b) {
    std::set<u32> in_line;
    for (u32 k = 0; k < b.line; ++k)
        if (const line_word w = line_word::of(load(b.place()[k])); w.state == line_state::waiting)
            in_line.insert(w.epoch);
    for (auto at = r.joined.begin(); at != r.joined.end();) {
        const bool gone = in_line.count(at->first) == 0;
        if (gone) r.passed.insert(at->first);
        at = gone ? r.joined.erase(at) : std::next(at);
    }
}

void on_grant(history& h, record& r, semaphore_block& b, u32 epoch) {
    r.joined.erase(epoch);
    // Find the new permit: the word has its owner, and no client may hold it already.
    for (u32 k = 0; k < b.permits; ++k) {
        const permit_word w = permit_word::of(load(b.permit()[k]));
        if (w.state != permit_state::held || w.epoch != epoch || r.owner.count(k) != 0) continue;
        r.owner[k] = epoch;
        break;
    }
    u64 mine = 0;
    for (const auto& [k, e] : r.owner) mine += e == epoch ? 1U : 0U;
    u32 held = 0;
    for (u32 k = 0; k < b.permits; ++k) {
        const permit_word w = permit_word::of(load(b.permit()[k]));
        held += w.state == permit_state::held && w.epoch == epoch ? 1U : 0U;
    }
    if (mine != held || mine != 1) h.find("a permit is out twice");
}

}  // namespace

bool semaphore_history(history& h, u64 seed, u64& done) {
    const u32 permits = 1 + static_cast<u32>(seed % 3), line = 4U << seed % 2;
    zeroed<semaphore_block> b(semaphore_block::bytes(permits, line));
    b->make(permits, line);
    record r;
    h.observe = [&](step s) {
        const u32 epoch = h.now()->epoch;
        if (s == step::line_joined) {
            r.joined[epoch] = ++r.joins;
            r.passed.erase(epoch);
        } else if (s == step::permit_taken) {
            const u64 mine = r.joined[epoch];
            u32 before = 0;
            for (const auto& [e, when] : r.joined) before += when < mine ? 1U : 0U;
            on_grant(h, r, *b, epoch);
            r.late = r.late || r.passed.count(epoch) != 0;
            // Each of those in front has a permit left.
            if (!r.late && before > semaphore(*b, 0).free_permits()) h.find("a waiter was overtaken");
            ++done;
        } else if (s == step::line_left) {
            r.joined.erase(epoch);
            r.passed.erase(epoch);
        } else if (s == step::line_passed) {
            on_passed(r, *b);
        } else if (s == step::permit_released) {
            r.held[epoch].reset();
        }
    };
    h.died = [&](const incarnation& l) {
        r.joined.erase(l.epoch);  // the repair removes it; until then it blocks others, and overtakes none
        r.held.erase(l.epoch);
        r.passed.erase(l.epoch);
    };
    h.repair = [&](u32 dead) {
        // From here on its permits may belong to another client.
        for (auto at = r.owner.begin(); at != r.owner.end();)
            at = at->second == dead ? r.owner.erase(at) : std::next(at);
        repair(*b, dead);
    };
    h.client = [&](incarnation& l) {
        semaphore s(*b, l.epoch);
        std::optional<permit>& mine = r.held[l.epoch];
        if (mine) {
            const permit p = *mine;
            r.owner.erase(p.index);
            if (!s.release(p)) h.find("a holder could not release");
            mine.reset();
            if (s.release(p)) h.find("a permit was released twice");
            return;
        }
        const u64 times[] = {0, 20'000, 400'000, 100'000'000};
        mine = s.acquire(times[l.below(4)]);
    };
    bool ended = h.run();
    if (!ended || !h.finding().empty()) return ended;
    for (auto& [epoch, p] : r.held)
        if (p && !semaphore(*b, epoch).release(*p)) h.find("a permit was lost by its holder");
    if (semaphore(*b, 0).free_permits() != permits) h.find("a permit is gone");
    if (semaphore(*b, 0).waiting() != 0) h.find("a ticket stays in the line for ever");
    return ended;
}

}  // namespace carousel::test
