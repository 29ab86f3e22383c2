#include <map>
#include <set>

#include "histories.hpp"
#include "ipc/queue.hpp"
#include "zeroed.hpp"

namespace carousel::test {
namespace {

using namespace carousel::ipc;

struct element {
    u64 producer = 0, number = 0, check = 0;
    [[nodiscard]] bool whole() const { return check == (producer ^ number * 0x9E3779B97F4A7C15U ^ 0x5AU); }
    static element of(u64 p, u64 n) { return {p, n, p ^ n * 0x9E3779B97F4A7C15U ^ 0x5AU}; }
    [[nodiscard]] std::pair<u64, u64> name() const { return {producer, number}; }
};

struct record {
    std::map<u32, element> pushing;  // epoch -> what it pushes now
    std::map<u32, u64> numbers;      // epoch -> how many it has begun to push
    std::set<std::pair<u64, u64>> published, taken, consumed;
    std::map<u64, u64> newest;                        // producer -> the last number that was taken first
    std::map<u32, std::pair<lease, element>> leased;  // epoch -> what it holds between two actions
    std::map<u32, element> held;                      // epoch -> what the cell it has taken contains
    u64 popped_by_the_dead = 0, claimed_by_the_dead = 0;
};

void on_taken(history& h, record& r, queue_block& b, u32 epoch, cell_state as) {
    for (u32 k = 0; k < b.capacity; ++k) {
        const cell_word w = cell_word::of(load(b.cell()[k]));
        if (w.state != as || w.epoch != epoch) continue;
        element e;
        std::memcpy(static_cast<void*>(&e), b.element(k), sizeof e);
        if (!e.whole()) h.find("an element is torn");
        if (r.consumed.count(e.name()) != 0) h.find("an element came twice");
        if (r.taken.insert(e.name()).second) {
            if (e.number < r.newest[e.producer]) h.find("a producer's elements came out of order");
            r.newest[e.producer] = e.number;
        }
        r.held[epoch] = e;
        return;
    }
    h.find("a taken element is nobody's");
}

void on_step(history& h, record& r, queue_block& b, step s, bool& leasing) {
    const u32 epoch = h.now()->epoch;
    if (s == step::cell_published) {
        r.published.insert(r.pushing[epoch].name());
    } else if (s == step::cell_popping) {
        leasing = false;
        on_taken(h, r, b, epoch, cell_state::popping);
    } else if (s == step::cell_leased) {
        on_taken(h, r, b, epoch, cell_state::leased);
    } else if (s == step::cell_consumed) {
        if (!r.consumed.insert(r.held[epoch].name()).second) h.find("an element was consumed twice");
        r.held.erase(epoch);
        r.leased.erase(epoch);
    } else if (s == step::cell_returned) {
        r.held.erase(epoch);
        r.leased.erase(epoch);
    }
}

void one_operation(history& h, record& r, queue_block& b, incarnation& l) {
    queue q(b, l.epoch);
    if (const auto mine = r.leased.find(l.epoch); mine != r.leased.end()) {
        const lease held = mine->second.first;
        const bool commits = l.below(4) != 0;
        if (!(commits ? q.commit(held) : q.requeue(held))) h.find("a lease was not its holder's any more");
        if (q.commit(held)) h.find("a lease was committed twice");
        return;
    }
    const u64 timeout = l.below(3) * 200'000;
    if (l.below(2) == 0) {
        r.pushing[l.epoch] = element::of(l.epoch, ++r.numbers[l.epoch]);
        const element mine = r.pushing[l.epoch];
        (void)q.push(&mine, timeout);
    } else if (l.below(2) == 0) {
        element got;
        if (q.pop(&got, timeout) && !got.whole()) h.find("a popped element is torn");
    } else {
        element got;
        if (const auto held = q.lease_one(&got, timeout)) r.leased[l.epoch] = {*held, got};
    }
}

}  // namespace

bool queue_history(history& h, u64 seed, u64& done) {
    const u32 capacity = 2U + static_cast<u32>(seed % 7);
    zeroed<queue_block> b(queue_block::bytes(capacity, sizeof(element)));
    b->make(capacity, sizeof(element));
    record r;
    bool unused = false;
    h.observe = [&](step s) { on_step(h, r, *b, s, unused); };
    h.repair = [&](u32 dead) { repair(*b, dead); };
    h.died = [&](const incarnation& l) {
        for (u32 k = 0; k < capacity; ++k) {
            const cell_word w = cell_word::of(load(b->cell()[k]));
            r.popped_by_the_dead += w.state == cell_state::popping && w.epoch == l.epoch ? 1U : 0U;
            r.claimed_by_the_dead += w.state == cell_state::claimed && w.epoch == l.epoch ? 1U : 0U;
        }
        r.held.erase(l.epoch);
        r.leased.erase(l.epoch);
    };
    h.client = [&](incarnation& l) { one_operation(h, r, *b, l); };
    const bool ended = h.run();
    done += r.consumed.size();
    if (!ended || !h.finding().empty()) return ended;

    for (auto& [epoch, held] : r.leased)
        if (!queue(*b, epoch).requeue(held.first)) h.find("a lease is gone");
    queue last(*b, epoch_mask);
    for (element e; last.try_pop(&e);)
        if (!e.whole() || !r.consumed.insert(e.name()).second) h.find("an element came twice at the end");
    for (const auto& name : r.consumed)
        if (r.published.count(name) == 0) h.find("an element came that nobody had published");
    if (r.published.size() - r.consumed.size() != r.popped_by_the_dead) h.find("an element is lost");
    if (last.lost() != r.popped_by_the_dead) h.find("the count of the lost is wrong");
    if (last.tombs() != r.claimed_by_the_dead) h.find("the count of the tombs is wrong");
    u32 room = 0;
    for (const element e = element::of(1, 1); last.try_push(&e);) ++room;
    if (room != capacity) h.find("capacity is lost");
    return ended;
}

}  // namespace carousel::test
