// Real processes that use one primitive each way, and SIGKILL: at random times, and at each named step by the
// process itself, the holder's steps included. Then what they have put down together must add up, and the
// space must be as empty as a new one.
//
// Each case kills 60 clients; tests/support/seed.hpp has the variables for more of them and for the seed.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <thread>

#include "core/clock.hpp"
#include "ipc/attachment.hpp"
#include "ipc/pool.hpp"
#include "ipc/semaphore.hpp"
#include "ipc/step.hpp"
#include "ipc/work_queue.hpp"
#include "kill_shapes.hpp"
#include "ledger.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/seed.hpp"

extern char** environ;

using namespace carousel;
using namespace carousel::ipc;
using namespace carousel::test;

namespace {

class field {
public:
    field(const std::string& role, u64 kills)
        : role_(role), kills_(kills), seed_(seed_or(1)), random_(seed_) {
        ::setenv("XDG_RUNTIME_DIR", folder_.path.c_str(), 1);
        book_ = std::make_unique<ledger>(path());
        holder_ = start("hold", step::count_);
        attached_ = std::make_unique<attachment>("field", 20);  // it is alive, and so is the memory
        for (pid_t& p : clients_) p = start(role_, step::count_);
    }
    ~field() {
        for (pid_t& p : clients_) end(p);
        end(holder_);
    }
    [[nodiscard]] ledger& book() { return *book_; }
    [[nodiscard]] u64 seed() const { return seed_; }
    [[nodiscard]] std::string text() const {
        return fmt::format("{}: seed {}, {} clients killed ({} at a step of their own), {} holders", role_,
                           seed_, killed_, by_step_, holders_killed_);
    }

    /// Kills, one after the other; one in N hits the holder.
    void inject_faults(const std::vector<step>& at, u32 holder_in) {
        while (killed_ < kills_) {
            std::this_thread::sleep_for(std::chrono::microseconds(random_() % 30'000));
            if (random_() % holder_in == 0 || ended(holder_)) kill_holder(true);
            pid_t& victim = clients_[random_() % std::size(clients_)];
            const pid_t was = victim;
            const bool by_itself = ended(victim);
            // A process with a step to die at usually reaches that step.
            if (!by_itself && at_step_.count(victim) != 0 && random_() % 4 != 0) continue;
            at_step_.erase(was);
            end(victim);
            ++killed_;
            by_step_ += by_itself ? 1U : 0U;
            const step own = random_() % 2 == 0 ? step::count_ : at[random_() % at.size()];
            victim = start(role_, own);
            if (own != step::count_) at_step_.insert({victim, own});
        }
        for (pid_t& p : clients_) end(p);
        kill_holder(false);
    }
    /// As the only remaining client, once all dead ones are repaired.
    [[nodiscard]] attachment& settle() {
        attachment& a = *attached_;
        const u64 until = now_ns() + 20 * ns_per_s;
        for (;;) {
            u32 others = 0;
            for (u32 k = 0; k < max_clients; ++k) others += client_at(a.block().registry, k) ? 1U : 0U;
            if (others == 1) return a;
            REQUIRE(now_ns() < until);
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }

private:
    [[nodiscard]] std::string path() const { return (folder_.path / "ledger").string(); }
    pid_t start(const std::string& role, step own) {
        const std::string seed = std::to_string(random_()), nth = std::to_string(1 + random_() % 40);
        const std::string at(name_of(own)), book = path();
        const char* words[] = {CAROUSEL_IPC_CLIENT, role.c_str(), "field",     book.c_str(),
                               seed.c_str(),        at.c_str(),   nth.c_str(), nullptr};
        pid_t pid = -1;
        REQUIRE(::posix_spawn(&pid, CAROUSEL_IPC_CLIENT, nullptr, nullptr, const_cast<char**>(words),
                              environ) == 0);
        return pid;
    }
    // It has ended, and is reaped.
    static bool ended(pid_t& p) {
        if (p <= 0 || ::waitpid(p, nullptr, WNOHANG) != p) return false;
        p = -1;
        return true;
    }
    static void end(pid_t& p) {
        if (p > 0 && !ended(p)) {
            ::kill(p, SIGKILL);  // a child that is not reaped yet: its pid can't be reused
            ::waitpid(p, nullptr, 0);
        }
        p = -1;
    }
    void kill_holder(bool may_die_by_itself) {
        end(holder_);
        ++holders_killed_;
        const step repair_steps[] = {step::entry_dead,    step::entry_fenced, step::repair_begun,
                                     step::word_repaired, step::repair_done,  step::entry_attached,
                                     step::loss_marked,   step::loss_counted, step::entry_freed,
                                     step::epoch_drawn};
        const bool dies = may_die_by_itself && random_() % 2 == 0;
        holder_ = start("hold", dies ? repair_steps[random_() % std::size(repair_steps)] : step::count_);
    }

    std::string role_;
    u64 kills_, seed_;
    std::mt19937_64 random_;
    scratch_folder folder_;
    std::unique_ptr<ledger> book_;
    std::unique_ptr<attachment> attached_;
    pid_t holder_ = -1;
    pid_t clients_[4] = {-1, -1, -1, -1};
    std::map<pid_t, step> at_step_;
    u64 killed_ = 0, by_step_ = 0, holders_killed_ = 0;
};

void require_plausible_reports(field& f) {
    std::cout << f.text() << ", " << f.book()->operations.load() << " deeds\n";
    INFO(f.text() << "; first broken: " << f.book()->first_broken);
    REQUIRE(f.book()->broken.load() == 0);
    REQUIRE(f.book()->operations.load() > 0);
}

// Each item that was sent has one end, or a dead one was just about to count it.
void require_balanced(field& f, bool tasks) {
    u64 lost = 0, twice = 0, uncounted = 0;
    const u32 all = f.book()->next_item.load();
    REQUIRE(all < most_items);
    for (u32 k = 0; k < all; ++k) {
        const item_story& s = f.book()->item[k];
        const u32 ends = s.finished.load() + (tasks ? s.dead_letters.load() : 0U);
        twice += ends > 1 ? 1U : 0U;
        if (s.sent.load() == 0 || ends == 1) continue;
        (s.finishing.load() > 0 ? uncounted : lost) += 1;
    }
    INFO(f.text() << ": of " << all << " items " << lost << " lost, " << twice << " twice, " << uncounted
                  << " whose last process died before it had counted them");
    std::cout << all << " items, " << uncounted << " uncounted\n";
    CHECK(lost == 0);
    CHECK(twice == 0);
}

}  // namespace

TEST_CASE("semaphore: processes killed anywhere leave no permit taken and admit none twice") {
    field f("semaphore", scaled(60));
    f.inject_faults({step::line_joined, step::turn_checked, step::turn_known, step::permit_taken,
                     step::line_left, step::permit_released},
                    12);
    attachment& a = f.settle();
    require_plausible_reports(f);
    const u32 k = a.place("turns", turns);
    semaphore s(a.block().block_of<semaphore_block>(k), a.epoch());
    CHECK(s.free_permits() == turns.count);
    CHECK(s.waiting() == 0);
}

TEST_CASE("queue: processes that are killed anywhere lose no leased element and deliver none twice") {
    field f("queue", scaled(60));
    f.inject_faults({step::cell_claimed, step::cell_written, step::cell_published, step::cell_leased,
                     step::cell_consumed, step::cell_returned, step::cell_passed},
                    12);
    attachment& a = f.settle();
    const u32 k = a.place("samples", samples);
    queue q(a.block().block_of<queue_block>(k), a.epoch());
    u64 e[2];
    while (q.try_pop(e)) {
        REQUIRE(e[0] < most_items);
        ++f.book()->item[e[0]].finished;
    }
    require_plausible_reports(f);
    require_balanced(f, false);
    u32 room = 0;
    while (q.try_push(e)) ++room;
    CHECK(room == samples.count);
}

TEST_CASE("work queue: processes killed anywhere leave each task committed once or a dead letter") {
    field f("work", scaled(60));
    f.inject_faults({step::task_filling, step::task_written, step::task_submitted, step::task_claimed,
                     step::task_committed, step::task_failed},
                    12);
    attachment& a = f.settle();
    const u32 k = a.place("tiles", tiles);
    work_queue w(a.block().block_of<work_queue_block>(k), a.epoch());
    u64 t[2];
    while (const auto c = w.try_claim(t)) {
        REQUIRE(t[0] < most_items);
        ++f.book()->item[t[0]].finished;
        CHECK(w.commit(*c));
    }
    while (w.take_dead_letter(t)) ++f.book()->item[t[0]].dead_letters;
    require_plausible_reports(f);
    require_balanced(f, true);
    CHECK(w.count(task_state::free) == tiles.count);
}

TEST_CASE("pool: processes killed anywhere leak no unit and never write to another's block") {
    field f("pool", scaled(60));
    f.inject_faults({step::serial_drawn, step::head_claimed, step::body_claimed, step::block_owned,
                     step::block_leaving, step::body_freed, step::block_freed, step::block_named,
                     step::block_sent, step::block_received, step::cell_consumed, step::cell_published},
                    12);
    attachment& a = f.settle();
    require_plausible_reports(f);
    const u32 k = a.place("pages", pages);
    shape through = travels;
    through.more = k + 1;
    queue cells(a.block().block_of<queue_block>(a.place("travels", through)), a.epoch());
    pool l(a.block().block_of<pool_block>(k), a.epoch());
    u64 e[4];
    bool damaged = false;
    while (const auto got = try_receive(cells, l, e, &damaged)) CHECK(l.release(*got));
    CHECK_FALSE(damaged);
    CHECK(l.use().free == pages.count / pages.each);
}

TEST_CASE("repeatedly killed holders treat no live client as dead and leave no dead one") {
    field f("semaphore", 2 * scaled(60));
    f.inject_faults({step::permit_taken, step::line_joined}, 2);
    attachment& a = f.settle();
    require_plausible_reports(f);
    const u32 k = a.place("turns", turns);
    CHECK(semaphore(a.block().block_of<semaphore_block>(k), a.epoch()).free_permits() == turns.count);
}
