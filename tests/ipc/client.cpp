// A process of test_kills.cpp: ROLE SPACE LEDGER SEED STEP NTH. It uses one primitive until it is killed; or,
// with the name of a step, it kills itself at the NTH passage. The holder is the same program: ROLE hold.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "core/errors.hpp"
#include "ipc/attachment.hpp"
#include "ipc/holder.hpp"
#include "ipc/pool.hpp"
#include "ipc/semaphore.hpp"
#include "ipc/step.hpp"
#include "ipc/work_queue.hpp"
#include "kill_shapes.hpp"
#include "ledger.hpp"

using namespace carousel;
using namespace carousel::ipc;
using namespace carousel::test;

namespace {

step deadly = step::count_;
u64 passages = 0;

struct process {
    attachment to;
    ledger book;
    std::mt19937_64 random;
    [[nodiscard]] u64 below(u64 n) { return random() % n; }
    [[nodiscard]] bool epoch_alive(u64 epoch) const {
        const client_id c = find_client(to.block().registry, static_cast<u32>(epoch));
        return c && c.state == entry_state::attached && c.epoch != to.epoch() && shm::is_alive(c.process);
    }
};

process* self = nullptr;

// A dead letter is lost with the client that takes it out, so its content is recorded before.
void note_dead_letter() {
    work_queue_block& b = self->to.block().block_of<work_queue_block>(self->to.place("tiles", tiles));
    for (u32 k = 0; k < b.capacity; ++k) {
        const task_word w = task_word::of(load(b.place()[k]));
        u64 item = 0;
        std::memcpy(&item, b.task(k), sizeof item);
        if (w.state == task_state::reading && w.epoch == self->to.epoch() && item < most_items)
            ++self->book->item[item].finishing;
    }
}

void on_step(step s) {
    if (s == step::dead_letter_read && self != nullptr) note_dead_letter();
    if (s != deadly || --passages != 0) return;
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
}

void semaphore_operation(process& p) {
    const u32 k = p.to.place("turns", turns);
    semaphore s(p.to.block().block_of<semaphore_block>(k), p.to.epoch());
    const auto got = s.acquire(p.below(4) * 5'000'000);
    if (!got) return;
    // The previous one has ended or left: no live process uses the entry.
    const u64 before = p.book->inside[got->index].exchange(p.to.epoch());
    if (before != 0 && p.epoch_alive(before)) p.book.find("a permit is out twice");
    if (p.below(4) == 0) std::this_thread::sleep_for(std::chrono::microseconds(p.below(300)));
    u64 mine = p.to.epoch();
    if (!p.book->inside[got->index].compare_exchange_strong(mine, 0)) p.book.find("somebody came in");
    if (!s.release(*got)) p.book.find("a holder could not release");
    ++p.book->operations;
}

void queue_operation(process& p) {
    const u32 k = p.to.place("samples", samples);
    queue q(p.to.block().block_of<queue_block>(k), p.to.epoch());
    u64 e[2];
    if (p.below(2) == 0) {
        const u32 item = p.book->next_item.fetch_add(1);
        if (item >= most_items) return;
        e[0] = item, e[1] = ~e[0];
        if (q.push(e, 5'000'000)) p.book->item[item].sent = 1;
        return;
    }
    const auto l = q.lease_one(e, 5'000'000);
    if (!l) return;
    if (e[1] != ~e[0] || e[0] >= most_items) return p.book.find("an element is torn");
    if (p.below(8) == 0) return (void)q.requeue(*l);
    ++p.book->item[e[0]].finishing;
    if (!q.commit(*l)) p.book.find("a lease was not its holder's");
    if (p.book->item[e[0]].finished.fetch_add(1) != 0) p.book.find("an element came twice");
    ++p.book->operations;
}

void work_operation(process& p) {
    const u32 k = p.to.place("tiles", tiles);
    work_queue w(p.to.block().block_of<work_queue_block>(k), p.to.epoch());
    u64 t[2];
    const u64 dice = p.below(8);
    if (dice < 3) {
        const u32 item = p.book->next_item.fetch_add(1);
        if (item >= most_items) return;
        t[0] = item, t[1] = ~t[0];
        if (w.submit(t, 5'000'000)) p.book->item[item].sent = 1;
    } else if (dice < 7) {
        const auto c = w.claim(t, 5'000'000);
        if (!c) return;
        if (t[1] != ~t[0] || t[0] >= most_items) return p.book.find("a task is torn");
        if (p.below(8) == 0) return (void)w.fail(*c);
        ++p.book->item[t[0]].finishing;
        if (!w.commit(*c)) p.book.find("a claim was not its holder's");
        if (p.book->item[t[0]].finished.fetch_add(1) != 0) p.book.find("a task was committed twice");
        ++p.book->operations;
    } else if (w.take_dead_letter(t) && t[0] < most_items) {
        ++p.book->item[t[0]].dead_letters;
    }
}

void fill_block(process& p, const pool& l, const block& k, bool check, u64 word_before) {
    auto* at = reinterpret_cast<u64*>(p.to.block().at(l.offset(k)));
    const u64 each = pages.each / sizeof(u64);
    for (u32 u = 0; u < k.units; ++u) {
        if (check && at[u * each] != word_before) p.book.find("another wrote into a block");
        if (!check) at[u * each] = word_before;
    }
}

void pool_operation(process& p) {
    const u32 k = p.to.place("pages", pages);
    shape through = travels;
    through.more = k + 1;
    queue cells(p.to.block().block_of<queue_block>(p.to.place("travels", through)), p.to.epoch());
    pool l(p.to.block().block_of<pool_block>(k), p.to.epoch());
    struct {
        block_ref name;
        u64 mark = 0;
    } e;
    if (p.below(2) == 0) {
        const auto got = l.acquire(1 + static_cast<u32>(p.below(6)), 5'000'000);
        if (!got) return;
        e.mark = p.random();
        fill_block(p, l, *got, false, e.mark);
        if (p.below(4) == 0) std::this_thread::sleep_for(std::chrono::microseconds(p.below(200)));
        fill_block(p, l, *got, true, e.mark);
        if (p.below(2) == 0 && try_send(l, *got, cells, &e)) return;
        if (!l.release(*got)) p.book.find("an owner could not release its block");
    } else {
        bool damaged = false;
        const auto got = try_receive(cells, l, &e, &damaged);
        if (damaged) p.book.find("a cell names no block");
        if (!got) return;
        fill_block(p, l, *got, true, e.mark);
        if (!l.release(*got)) p.book.find("a receiver could not release its block");
    }
    ++p.book->operations;
}

int hold(const char* name) {
    holder h(name, u64{4} << 20U);
    const pid_t parent = ::getppid();
    while (::getppid() == parent) h.run_once(100);  // not longer than the test
    return 0;
}

int use(const std::string& role, char** words) {
    process p{{words[0], 30}, ledger(words[1]), std::mt19937_64(std::strtoull(words[2], nullptr, 10))};
    self = &p;
    const pid_t parent = ::getppid();
    while (::getppid() == parent) {
        if (role == "semaphore") semaphore_operation(p);
        if (role == "queue") queue_operation(p);
        if (role == "work") work_operation(p);
        if (role == "pool") pool_operation(p);
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 7) return 2;
    for (u32 k = 0; k < steps; ++k)
        if (name_of(static_cast<step>(k)) == argv[5]) deadly = static_cast<step>(k);
    passages = std::strtoull(argv[6], nullptr, 10);
    set_hooks({&on_step, nullptr, nullptr});
    try {
        return std::strcmp(argv[1], "hold") == 0 ? hold(argv[2]) : use(argv[1], argv + 2);
    } catch (const error& e) {
        std::fprintf(stderr, "%s: %s\n", argv[1], e.what());
        return e.code();
    }
}
