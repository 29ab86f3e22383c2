#include <map>
#include <optional>

#include "histories.hpp"
#include "ipc/work_queue.hpp"
#include "zeroed.hpp"

namespace carousel::test {
namespace {

using namespace carousel::ipc;

struct task {
    u64 number = 0, check = 0;
    static task of(u64 n) { return {n, n * 0x9E3779B97F4A7C15U + 1}; }
    [[nodiscard]] bool whole() const { return check == number * 0x9E3779B97F4A7C15U + 1; }
};
struct story {
    u32 commits = 0, dead_letters = 0, claims = 0, failures = 0;
};
struct record {
    u64 numbers = 0;
    std::map<u32, u64> filling;  // epoch -> the task it submits now
    std::map<u64, story> tasks;  // those that were submitted
    struct held {
        claimed_task claim;
        u64 number = 0;
    };
    std::map<u32, held> holds;  // epoch -> the cells that it has claimed
    std::map<u32, u64> reads;   // epoch -> the dead letter it takes out
};

std::optional<u64> number_at(work_queue_block& b, u32 epoch, task_state s, task_word& w) {
    for (u32 k = 0; k < b.capacity; ++k) {
        w = task_word::of(load(b.place()[k]));
        if (w.state != s || w.epoch != epoch) continue;
        task t;
        std::memcpy(static_cast<void*>(&t), b.task(k), sizeof t);
        return t.whole() ? std::optional<u64>(t.number) : std::nullopt;
    }
    return std::nullopt;
}

void on_step(history& h, record& r, work_queue_block& b, step s) {
    const u32 epoch = h.now()->epoch;
    task_word w;
    if (s == step::task_submitted) {
        (void)r.tasks[r.filling[epoch]];
    } else if (s == step::task_claimed) {
        const auto n = number_at(b, epoch, task_state::claimed, w);
        if (!n) return h.find("a claimed task is torn or another's");
        for (const auto& [other, held] : r.holds)
            if (held.number == *n) h.find("a task is claimed twice");
        r.holds[epoch].number = *n;
        story& t = r.tasks[*n];
        if (t.commits != 0 || t.dead_letters != 0) h.find("a task came again behind its end");
        if (t.failures >= b.max_attempts) h.find("a task is tried too often");
        ++t.claims;
        if (w.attempts != t.failures) h.find("the count of attempts is wrong");
    } else if (s == step::task_failed) {
        ++r.tasks[r.holds[epoch].number].failures;
        r.holds.erase(epoch);
    } else if (s == step::dead_letter_read) {
        const auto n = number_at(b, epoch, task_state::reading, w);
        if (!n) return h.find("a letter is torn");
        r.reads[epoch] = *n;
    } else if (s == step::task_committed) {
        const auto dead_letter = r.reads.find(epoch);
        story& t = r.tasks[dead_letter != r.reads.end() ? dead_letter->second : r.holds[epoch].number];
        if (dead_letter != r.reads.end() && t.failures != b.max_attempts) h.find("a letter came too early");
        (dead_letter != r.reads.end() ? t.dead_letters : t.commits) += 1;
        if (t.commits + t.dead_letters != 1) h.find("a task was committed twice");
        r.reads.erase(epoch);
        r.holds.erase(epoch);
    }
}

void one_operation(history& h, record& r, work_queue_block& b, incarnation& l) {
    work_queue q(b, l.epoch);
    if (const auto mine = r.holds.find(l.epoch); mine != r.holds.end()) {
        const claimed_task held = mine->second.claim;
        const bool well = l.below(4) != 0;
        if (!(well ? q.commit(held) : q.fail(held))) h.find("a claim was not its holder's any more");
        if (q.commit(held)) h.find("a task was committed twice by one claim");
        return;
    }
    const u64 timeout = l.below(3) * 200'000, dice = l.below(8);
    if (dice < 4) {
        const task mine = task::of(++r.numbers);
        r.filling[l.epoch] = mine.number;
        (void)q.submit(&mine, timeout);
    } else if (dice < 7) {
        task got;
        if (const auto claimed = q.claim(&got, timeout)) {
            r.holds[l.epoch].claim = *claimed;
            if (got.number != r.holds[l.epoch].number) h.find("a claimed task is another");
        }
    } else {
        task got;
        if (q.take_dead_letter(&got) && !got.whole()) h.find("a letter is torn");
    }
}

}  // namespace

bool work_history(history& h, u64 seed, u64& done) {
    const u32 capacity = 2U + static_cast<u32>(seed % 7);
    zeroed<work_queue_block> b(work_queue_block::bytes(capacity, sizeof(task)));
    b->make(capacity, sizeof(task), 1 + static_cast<u32>(seed % 4));
    record r;
    h.observe = [&](step s) { on_step(h, r, *b, s); };
    h.repair = [&](u32 dead) { repair(*b, dead); };
    h.died = [&](const incarnation& l) {
        if (const auto held = r.holds.find(l.epoch); held != r.holds.end()) {
            ++r.tasks[held->second.number].failures;
            r.holds.erase(held);
        }
        r.reads.erase(l.epoch);
    };
    h.client = [&](incarnation& l) { one_operation(h, r, *b, l); };
    const bool ended = h.run();
    if (!ended || !h.finding().empty()) return ended;

    for (const auto& [epoch, held] : r.holds)
        if (work_queue(*b, epoch).commit(held.claim)) ++r.tasks[held.number].commits;
    work_queue last(*b, epoch_mask);
    task t;
    while (const auto claimed = last.try_claim(&t)) {
        ++r.tasks[t.number].commits;
        (void)last.commit(*claimed);
    }
    while (last.take_dead_letter(&t)) ++r.tasks[t.number].dead_letters;
    for (const auto& [number, s] : r.tasks)
        if (s.commits + s.dead_letters != 1) h.find("a task was committed not once or is lost");
    if (last.count(task_state::free) != capacity) h.find("a place is gone");
    done += r.tasks.size();
    return ended;
}

}  // namespace carousel::test
