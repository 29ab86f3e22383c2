// The actions of the supervisor for one dead or unwanted process, and their order: over a control block whose
// stages are processes that only sleep, and rings whose buffers a child can really write into late.
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>

#include "core/clock.hpp"
#include "ring/latest.hpp"
#include "ring/worker.hpp"
#include "shm/process_id.hpp"
#include "supervisor/processes/adoption.hpp"
#include "supervisor/processes/process_table.hpp"
#include "supervisor/processes/retire.hpp"
#include "supervisor/processes/seat_commands.hpp"
#include "supervisor/processes/standby.hpp"
#include "supervisor/processes/watch.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;
using ring::entry_state;
using ring::entry_word;
using ring::job_state;
using ring::job_word;

/// A child that represents a stage. On request it can write one value to a page that it shares with us.
class child {
public:
    child() {
        at_ = static_cast<page*>(
            ::mmap(nullptr, sizeof(page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
        pid_ = ::fork();
        if (pid_ == 0) {
            for (int k = 0; k < 30'000; ++k) {
                const u32 order = at_->order.load();
                if (order != 0) at_->content[order - 1].store(666), at_->order.store(0);
                ::usleep(1000);
            }
            ::_exit(0);
        }
        start_ = shm::start_time_of(pid_);
    }
    ~child() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        ::munmap(at_, sizeof(page));
    }
    child(const child&) = delete;
    child& operator=(const child&) = delete;

    [[nodiscard]] u32 pid() const { return static_cast<u32>(pid_); }
    [[nodiscard]] u64 start_time() const { return start_; }
    [[nodiscard]] bool is_alive() const {
        siginfo_t info{};
        return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               info.si_pid == 0;
    }
    [[nodiscard]] bool ends_within(u64 ms) const {
        for (const u64 until = now_ns() + ms * ns_per_ms; now_ns() < until; ::usleep(1000))
            if (!is_alive()) return true;
        return false;
    }
    std::atomic<u64>& content(u32 slot) { return at_->content[slot]; }
    /// A late write of its device's; true when it happened.
    bool writes_late(u32 slot) {
        at_->order.store(slot + 1);
        for (int k = 0; k < 2000 && at_->order.load() != 0; ++k) ::usleep(1000);
        return at_->order.load() == 0;
    }

private:
    struct page {
        std::atomic<u32> order;
        std::atomic<u64> content[shm::max_slots];
    };
    page* at_ = nullptr;
    pid_t pid_ = 0;
    u64 start_ = 0;
};

run_setup two_stages() {
    run_setup s;
    s.name = "retired";
    s.directory = "/nonexistent";
    for (const char* name : {"source", "sink"}) {
        stage_setup st;
        st.spec.name = name;
        st.spec.in_flight = 2;
        st.spec.standby = true;
        s.stages.push_back(st);
    }
    s.stages[0].format = {{"type", "t"}};
    s.stages[0].slot_bytes = 512;
    s.stages[1].spec.input_indices = {0};
    s.latest_lease_ms = 50;
    return s;
}

/// A run whose source is `holder`, in entry 3 with epoch 1; its supervisor has just taken it over and starts
/// no process.
struct retired_run {
    run_setup setup = two_stages();
    std::unique_ptr<shm::control_block> block = std::make_unique<shm::control_block>();
    event_loop loop;
    console out{-1, false, false};
    memory_store memory;
    std::unique_ptr<child> holder = std::make_unique<child>();
    std::unique_ptr<process_table> table;

    explicit retired_run(u64 kill_delay_ns = 0) {
        setup.kill_delay_ns = kill_delay_ns;
        ring::initialise(*block, plan_of(setup));
        enter(3, *holder, {holder->pid(), 1, 0, entry_state::live});
        c().entry[3].live_since_ns.store(1);
        c().entry[3].commits.store(5);
        c().seat[0].current.store(ring::seat_word{1, 3}.pack());
        for (u32 k = 0; k < c().seat[0].jobs; ++k) set_job(k, 5, job_state::idle);
        table = std::make_unique<process_table>(setup, loop, out);
        table->attach_to(c(), memory);
        REQUIRE(adopt_processes(*table, nullptr, "no-such-run").alive == 1);
    }
    shm::control_block& c() const { return *block; }
    seat& source() const { return *table->seats[0]; }
    void enter(u32 entry, const child& owner, entry_word w) const {
        c().entry[entry].identity.store(w.pack());
        c().entry[entry].start_time.store(owner.start_time());
    }
    void set_job(u32 job, u64 version, job_state state) const {
        c().job[job].store(job_word{version, 1, state}.pack());
    }
    entry_word entry(u32 k) const { return entry_word::of(ring::load(c().entry[k].identity)); }
    ring::slot_word slot(u32 k) const { return ring::slot_word::of(ring::load(c().link[0].slot[k])); }
    ring::seat_word current() const { return ring::seat_word::of(ring::load(c().seat[0].current)); }
    /// `incarnation` becomes the source's standby.
    ring::incarnation_id standby(const child& owner, bool ready) const {
        auto l = std::make_unique<process>();
        l->incarnation = ring::reserve_standby(c(), 0);
        enter(l->incarnation.entry, owner, {owner.pid(), 0, 0, entry_state::standby});
        l->pid = static_cast<i32>(owner.pid());
        l->pidfd.reset(shm::open_pidfd({l->pid, owner.start_time()}));
        l->spawned_ns = now_ns();
        l->standing_by = ready;
        const ring::incarnation_id made = l->incarnation;
        source().standby = std::move(l);
        return made;
    }
    /// Processes events and ticks until `holds`, or until the timeout.
    template <typename F>
    bool until(F&& holds, u64 ms = 3000) {
        for (const u64 end = now_ns() + ms * ns_per_ms; now_ns() < end && !holds();) {
            loop.run_once(5);
            supervise_seats(*table, now_ns());
        }
        return holds();
    }
};

}  // namespace

TEST_CASE("no process is killed while a word of it could be committed, within a limit") {
    retired_run b;
    // a word that no revocation gets at
    b.c().job[0].store(job_word{5, 1, static_cast<job_state>(7)}.pack());
    restart_seat(*b.table, b.source());
    CHECK_FALSE(b.holder->ends_within(40));
    CHECK(b.until([&] { return !b.holder->is_alive(); }));  // patience is over
}

TEST_CASE("a revoked process is killed at once and gone before its buffers are reused") {
    retired_run b;
    b.set_job(0, 5, job_state::open);
    b.c().link[0].slot[0].store(ring::slot_word{1, 0, 5, ring::slot_state::fill}.pack());
    restart_seat(*b.table, b.source());
    CHECK(b.holder->ends_within(1000));
    CHECK(b.until([&] { return b.slot(0).state == ring::slot_state::free; }));
    CHECK(b.entry(3).state == entry_state::fenced);
}

TEST_CASE("a run that ends does not wait for a dead process whose seat's word is damaged") {
    retired_run b;
    b.c().seat[0].current.fetch_xor(u64{1} << 34U);
    no_more_starts(*b.table);
    ::kill(static_cast<pid_t>(b.holder->pid()), SIGKILL);
    CHECK(b.until([&] { return b.table->all_gone(); }));
}

TEST_CASE("a late write of a process that still exists reaches no other frame's buffer") {
    retired_run b(60 * ns_per_s);  // for example in state D: it is still alive
    b.set_job(0, 5, job_state::open);
    b.c().link[0].slot[0].store(ring::slot_word{1, 0, 5, ring::slot_state::fill}.pack());
    restart_seat(*b.table, b.source());
    for (int k = 0; k < 5; ++k) supervise_seats(*b.table, now_ns());
    const ring::incarnation_id incarnation = b.source().successor;
    REQUIRE(incarnation);
    REQUIRE(ring::claim(b.c(), incarnation) == ring::claim_result::ok);
    REQUIRE(ring::go_live(b.c(), incarnation));
    ring::worker successor(b.c(), incarnation.seat, incarnation.entry, incarnation.epoch);
    ring::job j;
    REQUIRE(successor.begin(j, 0) == ring::outcome::ok);
    b.holder->content(j.output[0].index).store(1111);  // its frame
    REQUIRE(b.holder->is_alive());
    REQUIRE(b.holder->writes_late(0));
    CHECK(b.holder->content(j.output[0].index).load() == 1111);
    CHECK(b.slot(0).state == ring::slot_state::quarantined);
}

TEST_CASE("a death returns the assets that the process was loading and its places in viewers' groups") {
    retired_run b;
    b.c().assets = 2;
    const u64 loading = static_cast<u64>(shm::asset_state::loading) | u64{1} << 4U;  // epoch 1, seat 0
    b.c().asset[0].state.store(loading);
    b.c().asset[1].state.store(loading | u64{1} << 28U);  // another seat's
    b.c().link[0].group_state[shm::max_blocking].store(
        ring::group_word{3, 1, ring::group_state::latest}.pack());
    ::kill(static_cast<pid_t>(b.holder->pid()), SIGKILL);
    CHECK(b.until([&] { return b.entry(3).state == entry_state::fenced; }));
    CHECK(ring::load(b.c().asset[0].state) == static_cast<u64>(shm::asset_state::empty));
    CHECK(ring::load(b.c().asset[1].state) == (loading | u64{1} << 28U));
    CHECK(ring::group_word::of(ring::load(b.c().link[0].group_state[shm::max_blocking])).state ==
          ring::group_state::absent);
}

TEST_CASE("an asset is free again only when its loader has ended") {
    retired_run b(60 * ns_per_s);
    b.c().assets = 1;
    const u64 loading = static_cast<u64>(shm::asset_state::loading) | u64{1} << 4U;
    b.c().asset[0].state.store(loading);
    restart_seat(*b.table, b.source());
    for (int k = 0; k < 5; ++k) supervise_seats(*b.table, now_ns());
    REQUIRE(b.holder->is_alive());
    CHECK(ring::load(b.c().asset[0].state) == loading);
}

TEST_CASE("if a word of another job can't be read at a death, no single frame is blamed") {
    retired_run b;
    const bool damaged = GENERATE(false, true);
    CAPTURE(damaged);
    b.set_job(0, 5, job_state::open);
    b.c().job_info[0].ring_sequence.store(0);
    shm::word& lease = b.c().source[0].sequence_lease[0];
    lease.store(ring::lease_word{0, 0, 5, 0, ring::lease_state::leased}.pack());
    if (damaged) b.c().job[1].fetch_xor(u64{1} << 20U);
    ::kill(static_cast<pid_t>(b.holder->pid()), SIGBUS);
    REQUIRE(
        b.until([&] { return ring::lease_word::of(ring::load(lease)).state == ring::lease_state::wait; }));
    const ring::lease_word w = ring::lease_word::of(ring::load(lease));
    CHECK(w.failures() == (damaged ? 0 : 1));
    CHECK(w.alone() == damaged);
}

TEST_CASE("a stale lease of a viewer is revoked by the supervisor even if no stage polls") {
    retired_run b;
    shm::link_block& l = b.c().link[0];
    l.group_state[shm::max_blocking].store(
        ring::group_word{shm::max_incarnations, 1, ring::group_state::latest}.pack());
    l.group[2][shm::max_blocking].store(ring::lease_word{1, 0, 0, 0, ring::lease_state::leased}.pack());
    l.lease_since_ns[shm::max_blocking].store(now_ns());
    supervise_seats(*b.table, now_ns());
    CHECK(ring::lease_word::of(ring::load(l.group[2][shm::max_blocking])).state == ring::lease_state::leased);
    CHECK(b.until(
        [&] {
            return ring::lease_word::of(ring::load(l.group[2][shm::max_blocking])).state ==
                   ring::lease_state::skipped;
        },
        1000));
}

TEST_CASE("a standby takes over once it reported ready and is skipped until then") {
    retired_run b;
    const child waiting;
    const bool ready = GENERATE(true, false);
    CAPTURE(ready);
    const ring::incarnation_id incarnation = b.standby(waiting, ready);
    ::kill(static_cast<pid_t>(b.holder->pid()), SIGKILL);
    CHECK(b.until([&] { return b.current().epoch == 2; }));
    CHECK((b.current().entry == incarnation.entry) == ready);
    CHECK(b.entry(incarnation.entry).state == (ready ? entry_state::live : entry_state::standby));
    CHECK(b.table->account.promoted == (ready ? 1U : 0U));
    CHECK(b.until([&] { return b.source().start_wanted == !ready; }));
    CHECK(job_word::of(ring::load(b.c().job[0])).epoch == 2);
}

TEST_CASE("a takeover is reported with all parts, also if the successor's ready is read late") {
    retired_run b;
    ::kill(static_cast<pid_t>(b.holder->pid()), SIGKILL);
    REQUIRE(b.until([&] { return b.current().epoch == 2 && b.source().start_wanted; }));
    const child next;
    auto p = std::make_unique<process>();
    p->incarnation = b.source().successor;
    p->pid = static_cast<i32>(next.pid());
    p->spawned_ns = now_ns();
    p->attached_ns = p->spawned_ns + 1;
    const u64 first = p->spawned_ns + 3;
    const u64 ready_after_ns =
        GENERATE(u64{0}, u64{2}, u64{9});  // not read yet; before its first frame; after it
    CAPTURE(ready_after_ns);
    if (ready_after_ns != 0) p->ready_ns = p->spawned_ns + ready_after_ns;
    b.c().entry[p->incarnation.entry].first_commit_ns.store(first);
    b.source().now = std::move(p);
    keep_standby(*b.table, b.source(), now_ns());
    const std::vector<recovery> all = b.table->recoveries.all();
    REQUIRE(all.size() == 1);
    CHECK(all[0].followed_ns == first);
    CHECK(all[0].ready_ns == (ready_after_ns == 2 ? first - 1 : first));
    CHECK(parts_of_takeovers_ms(all).to_ready.size() == 1);
    CHECK(parts_of_takeovers_ms(all).to_frame.size() == 1);
}

TEST_CASE("a standby does not hide that its stage has delivered no frame") {
    retired_run b;
    const child waiting;
    b.c().entry[3].commits.store(0);
    b.standby(waiting, true);
    ::kill(static_cast<pid_t>(b.holder->pid()), SIGKILL);
    CHECK(b.until([&] { return b.current().epoch == 2; }));
    CHECK(b.table->account.promoted == 0);
}

TEST_CASE("the successor of a withdrawn entry is another entry that may be claimed") {
    run_setup setup = two_stages();
    auto block = std::make_unique<shm::control_block>();
    ring::initialise(*block, plan_of(setup));
    event_loop loop;
    console out{-1, false, false};
    memory_store memory;
    // No word has the withdrawn entry's epoch: they all belong to an older incarnation that has not ended
    // yet. So the entry looks free for use.
    const child older;
    const ring::incarnation_id old = ring::appoint(*block, 0);
    block->entry[old.entry].identity.store(entry_word{older.pid(), old.epoch, 0, entry_state::doomed}.pack());
    block->entry[old.entry].start_time.store(older.start_time());
    for (u32 k = 0; k < block->seat[0].jobs; ++k)
        block->job[k].store(job_word{5, old.epoch, job_state::aborted}.pack());
    const ring::incarnation_id appointed = ring::appoint(*block, 0);
    const bool withdrawn_already = GENERATE(false, true);  // by an adopter that died after it
    if (withdrawn_already) REQUIRE(ring::withdraw(*block, appointed.entry));
    process_table table(setup, loop, out);
    table.attach_to(*block, memory);
    adopt_processes(table, nullptr, "no-such-run");
    const ring::seat_word sits = ring::seat_word::of(ring::load(block->seat[0].current));
    CHECK(sits.epoch == appointed.epoch + 1);
    CHECK(sits.entry != appointed.entry);
    CHECK(entry_word::of(ring::load(block->entry[sits.entry].identity)).state == entry_state::starting);
    CHECK(ring::claim(*block, {0, sits.entry, sits.epoch}) == ring::claim_result::ok);
}

TEST_CASE("a clock of a link that cannot be hides no other reason of a process") {
    retired_run b;
    const u64 now = now_ns();
    b.set_job(0, 5, job_state::open);
    b.c().entry[3].heartbeat_ns.store(now);
    b.c().entry[3].processing_since_ns.store(now);
    REQUIRE(stall_reason(*b.table, now) == "source is processing a frame");
    b.c().entry[3].pause.store(static_cast<u64>(shm::pause_reason::link));
    b.c().entry[3].paused_since_ns.store(now + 3600 * ns_per_s);
    CHECK(stall_reason(*b.table, now) == "source is processing a frame");
}
