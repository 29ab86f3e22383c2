#include <map>
#include <vector>

#include "histories.hpp"
#include "ipc/pool.hpp"
#include "zeroed.hpp"

namespace carousel::test {
namespace {

using namespace carousel::ipc;

struct element {
    block_ref block;
    u64 units = 0;
};
constexpr u32 the_cells = ~u32{0};  // an owner: a cell on its way

struct owned {
    u32 units = 0, owner = 0;
    bool named = false;  // a published cell names it
};
struct record {
    std::map<u32, owned> blocks;                    // first unit -> the block
    std::map<u32, std::vector<block>> holds;        // epoch -> its blocks between two actions
    std::map<u32, u32> requested, sends, receives;  // epoch -> units, first unit it gives or has received now
};

void on_owned(history& h, record& r, pool_block& b, u32 epoch) {
    for (u32 k = 0; k < b.units; ++k) {
        const unit_word w = unit_word::of(load(b.unit()[k]));
        if (w.state != unit_state::owned || w.epoch != epoch || r.blocks.count(k) != 0) continue;
        u32 n = 1;
        while (k + n < b.units && load(b.unit()[k + n]) == unit_word{k, 0, unit_state::body}.pack()) ++n;
        if (n != r.requested[epoch]) h.find("a block has not the units that were asked for");
        for (const auto& [first, other] : r.blocks)
            if (first < k + n && k < first + other.units) h.find("a unit is in two blocks");
        r.blocks[k] = {n, epoch, false};
        return;
    }
    h.find("a block is owned by two");
}

void on_step(history& h, record& r, pool_block& b, queue_block& cells, step s) {
    const u32 epoch = h.now()->epoch;
    if (s == step::block_owned) {
        on_owned(h, r, b, epoch);
    } else if (s == step::cell_published) {
        r.blocks[r.sends[epoch]].named = true;
    } else if (s == step::block_sent) {
        r.blocks[r.sends[epoch]].owner = the_cells;
    } else if (s == step::block_received) {
        for (u32 k = 0; k < cells.capacity; ++k) {
            const cell_word w = cell_word::of(load(cells.cell()[k]));
            if (w.state != cell_state::leased || w.epoch != epoch) continue;
            element e;
            std::memcpy(static_cast<void*>(&e), cells.element(k), sizeof e);
            const auto first = static_cast<u32>(e.block.unit);
            if (r.blocks.count(first) == 0) return h.find("a received block is nobody's");
            if (r.blocks[first].units != e.units) h.find("a received block has lost units");
            r.blocks[first].owner = epoch;
            r.receives[epoch] = first;
        }
    } else if (s == step::cell_consumed) {
        r.blocks[r.receives[epoch]].named = false;
    }
}

void send_block(history& h, record& r, pool& p, queue& q, incarnation& l) {
    std::vector<block>& mine = r.holds[l.epoch];
    element e;
    const block k = mine.back();
    e.units = k.units;
    r.sends[l.epoch] = k.unit;
    mine.pop_back();
    if (!try_send(p, k, q, &e)) r.holds[l.epoch].push_back(k);
}

void one_operation(history& h, record& r, pool_block& b, queue_block& cells, incarnation& l) {
    pool p(b, l.epoch);
    queue q(cells, l.epoch);
    const u64 dice = l.below(10);
    if (dice < 4 && r.holds[l.epoch].size() < 3) {
        r.requested[l.epoch] = 1 + static_cast<u32>(l.below(4));
        if (const auto got = p.acquire(r.requested[l.epoch], l.below(3) * 200'000))
            r.holds[l.epoch].push_back(*got);
    } else if (dice < 6 && !r.holds[l.epoch].empty()) {
        const block k = r.holds[l.epoch].back();
        r.holds[l.epoch].pop_back();
        r.blocks.erase(k.unit);
        if (!p.release(k)) h.find("an owner could not release its block");
        if (p.release(k)) h.find("a block was released twice");
    } else if (dice < 8 && !r.holds[l.epoch].empty()) {
        send_block(h, r, p, q, l);
    } else {
        element e;
        bool damaged = false;
        if (const auto got = try_receive(q, p, &e, &damaged)) r.holds[l.epoch].push_back(*got);
        if (damaged) h.find("a cell names no block");
    }
}

}  // namespace

bool pool_history(history& h, u64 seed, u64& done) {
    const u32 units = 5 + static_cast<u32>(seed % 12), capacity = 2 + static_cast<u32>(seed % 3);
    zeroed<pool_block> b(pool_block::bytes(units));
    zeroed<queue_block> cells(queue_block::bytes(capacity, sizeof(element)));
    b->make(units, 4096, 0);
    cells->make(capacity, sizeof(element), 1);
    record r;
    u64 owned_once = 0;
    h.observe = [&](step s) {
        owned_once += s == step::block_owned ? 1U : 0U;
        on_step(h, r, *b, *cells, s);
    };
    h.repair = [&](u32 dead) {
        for (auto at = r.blocks.begin(); at != r.blocks.end();) {
            if (at->second.owner == dead && at->second.named) at->second.owner = the_cells;
            at = at->second.owner == dead ? r.blocks.erase(at) : std::next(at);
        }
        repair(*cells, dead);
        std::vector<block_ref> named;
        gather_named(*cells, named);
        repair(*b, dead, named);
    };
    h.died = [&](const incarnation& l) { r.holds.erase(l.epoch); };
    h.client = [&](incarnation& l) { one_operation(h, r, *b, *cells, l); };
    const bool ended = h.run();
    done += owned_once;
    if (!ended || !h.finding().empty()) return ended;

    for (const auto& [epoch, blocks] : r.holds)
        for (const block& k : blocks)
            if (!pool(*b, epoch).release(k)) h.find("a block was lost by its owner");
    pool last(*b, epoch_mask);
    queue q(*cells, epoch_mask);
    element e;
    bool damaged = false;
    while (const auto got = try_receive(q, last, &e, &damaged)) (void)last.release(*got);
    if (damaged) h.find("a cell names no block at the end");
    if (last.use().free != units || last.use().largest_free != units) h.find("a unit is leaked");
    return ended;
}

}  // namespace carousel::test
