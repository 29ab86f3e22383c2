// How a second supervisor handles a control block that the first one left between two of its steps. The words
// and entries are written here as they would be then; no stage runs, so no process is started.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>

#include "core/clock.hpp"
#include "ring/event_domain.hpp"
#include "ring/recovery.hpp"
#include "shm/process_id.hpp"
#include "shm/segment.hpp"
#include "supervisor/mps/mps_domain.hpp"
#include "supervisor/processes/adoption.hpp"
#include "supervisor/processes/process_table.hpp"
#include "supervisor/processes/retire.hpp"
#include "supervisor/processes/seat_commands.hpp"
#include "supervisor/processes/watch.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;
using ring::entry_state;
using ring::entry_word;
using ring::job_state;
using ring::job_word;

run_setup two_stages() {
    run_setup s;
    s.name = "left";
    s.directory = "/nonexistent";
    for (const char* name : {"source", "sink"}) {
        stage_setup st;
        st.spec.name = name;
        st.spec.in_flight = 2;
        s.stages.push_back(st);
    }
    s.stages[0].format = {{"type", "t"}};
    s.stages[0].slot_bytes = 512;
    s.stages[1].spec.input_indices = {0};
    return s;
}

/// A block, and as many supervisors in a row as a test wants.
struct restored_block {
    run_setup setup = two_stages();
    std::unique_ptr<shm::control_block> block = std::make_unique<shm::control_block>();
    event_loop loop;
    console out{-1, false, false};
    memory_store memory;
    std::unique_ptr<process_table> table;

    restored_block() { ring::initialise(*block, plan_of(setup)); }
    shm::control_block& c() const { return *block; }
    found_processes adopt(const nlohmann::json& state = nullptr, const std::string& run_id = "no-such-run") {
        table = std::make_unique<process_table>(setup, loop, out);
        table->attach_to(c(), memory);
        return adopt_processes(*table, state, run_id);
    }
    const seat& first() const { return *table->seats[0]; }
    void enter(u32 entry, entry_word w, u64 start_time) const {
        c().entry[entry].identity.store(w.pack());
        c().entry[entry].start_time.store(start_time);
        c().entry[entry].live_since_ns.store(1);
    }
    void set_job(u32 job, u64 version, u32 epoch, job_state state) const {
        c().job[job].store(job_word{version, epoch, state}.pack());
    }
    job_word job(u32 k) const { return job_word::of(ring::load(c().job[k])); }
    entry_word entry(u32 k) const { return entry_word::of(ring::load(c().entry[k].identity)); }
    ring::seat_word current() const { return ring::seat_word::of(ring::load(c().seat[0].current)); }
    /// The words of the seat are all free for its next incarnation, and nothing has an older epoch.
    void check_words_free() const {
        for (u32 k = 0; k < c().seat[0].jobs; ++k) {
            CAPTURE(k);
            CHECK(job(k).state == job_state::idle);
            CHECK(job(k).epoch == current().epoch);
        }
    }
};

i32 dead_pid() {
    const spawned p = spawn({.argv = {"/bin/true"}, .environment = {}});
    pollfd ready{p.pidfd.get(), POLLIN, 0};
    ::poll(&ready, 1, 10'000);
    (void)reap(p.pidfd.get());
    return p.pid;
}

struct sleeper {
    spawned process = spawn({.argv = {"/bin/sleep", "60"}, .environment = {}});
    ~sleeper() {
        shm::signal_pidfd(process.pidfd.get(), SIGKILL);
        pollfd ready{process.pidfd.get(), POLLIN, 0};
        ::poll(&ready, 1, 10'000);
        (void)reap(process.pidfd.get());
    }
    bool is_alive() const { return !has_ended(process.pidfd.get()); }
};

}  // namespace

TEST_CASE("a supervisor that died before its first appointment leaves seats started from scratch") {
    restored_block b;
    const auto n = b.adopt();
    CHECK(n.alive == 0);
    CHECK(n.dead == 0);
    CHECK(b.first().start_wanted);
}

TEST_CASE("an entry that was prepared but never became the seat's is taken back whole") {
    restored_block b;
    b.enter(7, {0, 1, 0, entry_state::starting}, 0);
    b.adopt();
    CHECK(b.entry(7).state == entry_state::unused);
    CHECK(b.first().start_wanted);
}

TEST_CASE("an unclaimed appointed entry is withdrawn: its late process finds no seat") {
    restored_block b;
    const ring::incarnation_id appointed = ring::appoint(b.c(), 0);
    const bool handed_over = GENERATE(false, true);
    if (handed_over) ring::revoke(b.c(), 0, 0);
    b.adopt();
    CHECK(ring::claim(b.c(), appointed) == ring::claim_result::withdrawn);
    CHECK(b.current().epoch == appointed.epoch + 1);
    CHECK(b.first().start_wanted);
    CHECK(b.table->account.deaths == 0);
    b.check_words_free();
}

TEST_CASE("the words of a process that died before its claim pass to its successor's successor") {
    restored_block b;
    const ring::incarnation_id holder = ring::appoint(b.c(), 0);
    ring::revoke(b.c(), 0, 0);
    const ring::incarnation_id successor = ring::appoint(b.c(), 0);  // and there the first supervisor died
    b.adopt();
    supervise_seats(*b.table, 1);
    CHECK(ring::claim(b.c(), holder) == ring::claim_result::withdrawn);
    CHECK(ring::claim(b.c(), successor) == ring::claim_result::withdrawn);
    CHECK(b.current().epoch == successor.epoch + 1);
    CHECK(b.first().start_wanted);
    b.check_words_free();
}

TEST_CASE("a dead process without retirement is retired: frames return, its words are free") {
    restored_block b;
    b.enter(3, {static_cast<u32>(dead_pid()), 1, 0, entry_state::live}, 1);
    b.c().seat[0].current.store(ring::seat_word{1, 3}.pack());
    b.set_job(0, 5, 1, job_state::open);
    b.set_job(1, 6, 1, job_state::idle);
    b.set_job(2, 7, 1, job_state::submitted);
    b.set_job(3, 8, 1, job_state::committed);
    b.c().source[0].sequence_lease[0].store(ring::lease_word{0, 0, 5, 0, ring::lease_state::leased}.pack());
    b.c().link[0].slot[0].store(ring::slot_word{1, 0, 5, ring::slot_state::fill}.pack());
    const auto n = b.adopt();
    CHECK(n.dead == 1);
    CHECK(b.table->account.deaths == 1);
    CHECK(b.entry(3).state == entry_state::fenced);
    CHECK(ring::lease_word::of(ring::load(b.c().source[0].sequence_lease[0])).state ==
          ring::lease_state::wait);
    CHECK(ring::slot_word::of(ring::load(b.c().link[0].slot[0])) ==
          ring::slot_word{2, 0, 0, ring::slot_state::free});
    CHECK(b.first().start_wanted);
    b.check_words_free();
    SECTION("a third supervisor finds nothing left to retire") {
        CHECK(b.adopt(state_json(*b.table)).dead == 0);
        CHECK(b.table->account.deaths == 1);
        CHECK(b.first().start_wanted);
        b.check_words_free();
    }
}

TEST_CASE("a partial retirement is resumed at any step, next to a live successor") {
    restored_block b;
    const sleeper successor;
    const auto old = static_cast<u32>(dead_pid());
    const auto state = GENERATE(entry_state::live, entry_state::doomed, entry_state::fenced);
    const auto words =
        GENERATE(job_state::open, job_state::submitted, job_state::aborted, job_state::committed);
    b.enter(3, {old, 1, 0, state}, 1);
    b.enter(4, {static_cast<u32>(successor.process.pid), 2, 0, entry_state::live},
            successor.process.start_time);
    b.c().seat[0].current.store(ring::seat_word{2, 4}.pack());
    for (u32 k = 0; k < 4; ++k) b.set_job(k, 5, k < 2 ? 1 : 2, k < 2 ? words : job_state::idle);
    const auto n = b.adopt();
    supervise_seats(*b.table, 1);
    CHECK(n.alive == 1);
    CHECK(n.dead == 0);
    CHECK(successor.is_alive());
    CHECK(b.entry(3).state == entry_state::fenced);
    CHECK(b.first().now->pid == successor.process.pid);
    CHECK(b.first().machine.state() == seat_state::running);
    b.check_words_free();
}

TEST_CASE("a pid that is another process by now is never taken for a stage") {
    restored_block b;
    const sleeper unrelated;
    b.enter(3, {static_cast<u32>(unrelated.process.pid), 1, 0, entry_state::live},
            unrelated.process.start_time - 1);
    b.c().seat[0].current.store(ring::seat_word{1, 3}.pack());
    CHECK(b.adopt().alive == 0);
    supervise_seats(*b.table, 1);
    CHECK(unrelated.is_alive());
}

TEST_CASE("a process with a dead stage's pid is distinguished by its start time") {
    const std::string run_id = "adopted" + std::to_string(::getpid());
    const shm::segment mapped = shm::segment::create(run_id);  // its child maps the run, as a stage does
    const pid_t child = ::fork();
    if (child == 0)
        for (;;) ::pause();
    const u64 start_time = shm::start_time_of(child);
    const u64 recorded = GENERATE_COPY(start_time, start_time - 1);
    restored_block b;
    b.enter(3, {static_cast<u32>(child), 1, 0, entry_state::live}, recorded);
    b.c().seat[0].current.store(ring::seat_word{1, 3}.pack());
    const found_processes n = b.adopt(nullptr, run_id);
    CHECK(n.alive == (recorded == start_time ? 1 : 0));
    CHECK(n.dead == (recorded == start_time ? 0 : 1));
    supervise_seats(*b.table, 1);
    CHECK(shm::is_alive({child, start_time}));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    shm::segment::remove(run_id);
}

TEST_CASE("a life that was being replaced is ended by the next supervisor") {
    restored_block b;
    const sleeper old;
    b.enter(3, {static_cast<u32>(old.process.pid), 1, 0, entry_state::live}, old.process.start_time);
    b.c().seat[0].current.store(ring::seat_word{1, 3}.pack());
    const ring::incarnation_id successor = ring::appoint(b.c(), 0);  // and there the first supervisor died
    b.adopt();
    supervise_seats(*b.table, 1);
    pollfd ready{old.process.pidfd.get(), POLLIN, 0};
    CHECK(::poll(&ready, 1, 5000) == 1);
    CHECK(ring::claim(b.c(), successor) == ring::claim_result::withdrawn);
}

TEST_CASE("a live standby stays its seat's standby, but not a second, dead or unclaimed one") {
    restored_block b;
    b.setup.stages[0].spec.standby = true;
    const sleeper holder, standby, second;
    b.enter(3, {static_cast<u32>(holder.process.pid), 1, 0, entry_state::live}, holder.process.start_time);
    b.c().seat[0].current.store(ring::seat_word{1, 3}.pack());
    b.enter(5, {static_cast<u32>(standby.process.pid), 0, 0, entry_state::standby},
            standby.process.start_time);
    b.enter(6, {static_cast<u32>(second.process.pid), 0, 0, entry_state::standby}, second.process.start_time);
    b.enter(7, {static_cast<u32>(dead_pid()), 0, 0, entry_state::standby}, 1);
    b.enter(8, {0, 0, 0, entry_state::standby}, 0);
    const bool ready = GENERATE(true, false);
    b.c().entry[5].live_since_ns.store(ready ? 1 : 0);
    const auto n = b.adopt();
    CHECK(n.alive == 1);
    CHECK(n.standbys == 1);
    REQUIRE(b.first().standby);
    CHECK(b.first().standby->pid == standby.process.pid);
    CHECK(b.first().standby->standing_by == ready);
    CHECK(b.entry(7).state == entry_state::fenced);
    CHECK(ring::claim_standby(b.c(), {0, 8, 0}) == ring::claim_result::withdrawn);
    for (int k = 0; k < 500 && b.entry(6).state != entry_state::fenced; ++k) {
        b.loop.run_once(10);
        supervise_seats(*b.table, now_ns());
    }
    CHECK(b.entry(6).state == entry_state::fenced);
    CHECK_FALSE(second.is_alive());
    CHECK(standby.is_alive());
    CHECK(holder.is_alive());
    CHECK(b.table->account.deaths == 0);
    CHECK(b.table->recoveries.all().empty());
}

TEST_CASE("an owner that died without a supervisor is replaced by its ready standby at once") {
    restored_block b;
    b.setup.stages[0].spec.standby = true;
    const sleeper standby;
    const bool ready = GENERATE(true, false);
    CAPTURE(ready);
    b.enter(3, {static_cast<u32>(dead_pid()), 1, 0, entry_state::live}, 1);
    b.c().entry[3].commits.store(9);
    b.c().seat[0].current.store(ring::seat_word{1, 3}.pack());
    b.enter(5, {static_cast<u32>(standby.process.pid), 0, 0, entry_state::standby},
            standby.process.start_time);
    b.c().entry[5].live_since_ns.store(ready ? 1 : 0);
    b.set_job(0, 5, 1, job_state::open);
    nlohmann::json state = [] {
        restored_block other;
        other.adopt();
        return state_json(*other.table);
    }();
    state["seats"][0]["state"] = static_cast<int>(seat_state::running);
    b.adopt(state);
    CHECK((b.first().now && b.first().now->pid == standby.process.pid) == ready);
    CHECK(b.entry(5).state == (ready ? entry_state::live : entry_state::standby));
    CHECK(b.table->account.promoted == (ready ? 1 : 0));
    CHECK(b.table->account.no_standby[static_cast<u8>(why_no_standby::starting)] == (ready ? 0 : 1));
    CHECK(b.table->account.deaths == 1);
}

TEST_CASE("a promotion cut between its two steps is completed with the dead owner's words") {
    restored_block b;
    b.setup.stages[0].spec.standby = true;
    const sleeper standby;
    b.enter(3, {static_cast<u32>(dead_pid()), 1, 0, entry_state::live}, 1);
    b.enter(5, {static_cast<u32>(standby.process.pid), 0, 0, entry_state::standby},
            standby.process.start_time);
    b.c().seat[0].current.store(ring::seat_word{2, 5}.pack());
    b.set_job(0, 5, 1, job_state::open);
    b.set_job(1, 6, 1, job_state::idle);
    b.set_job(2, 7, 1, job_state::submitted);
    b.set_job(3, 8, 1, job_state::committed);
    const auto n = b.adopt();
    supervise_seats(*b.table, 1);
    CHECK(n.alive == 1);
    REQUIRE(b.first().now);
    CHECK(b.first().now->pid == standby.process.pid);
    CHECK_FALSE(b.first().standby);
    CHECK(b.entry(5).state == entry_state::live);
    CHECK(b.entry(5).epoch == 3);  // 2 may have been sent to a process, or stored in words
    CHECK(b.current() == ring::seat_word{3, 5});
    CHECK(b.entry(3).state == entry_state::fenced);
    CHECK(b.table->account.promoted == 1);
    b.check_words_free();
}

TEST_CASE("a promotion cut between its two steps gives the words to a fresh process if its standby is dead") {
    restored_block b;
    b.setup.stages[0].spec.standby = true;
    b.enter(3, {static_cast<u32>(dead_pid()), 1, 0, entry_state::live}, 1);
    b.enter(5, {static_cast<u32>(dead_pid()), 0, 0, entry_state::standby}, 1);
    b.c().seat[0].current.store(ring::seat_word{2, 5}.pack());
    for (u32 k = 0; k < b.c().seat[0].jobs; ++k) b.set_job(k, 5, 1, job_state::open);
    b.adopt();
    supervise_seats(*b.table, 1);
    CHECK(b.current().epoch == 3);  // no process has 2
    CHECK(b.first().successor.epoch == 3);
    CHECK(b.first().start_wanted);
    b.check_words_free();
}

TEST_CASE("a stage that was being taken down when its supervisor died is down after its end") {
    restored_block b;
    b.adopt();
    nlohmann::json state = state_json(*b.table);
    state["seats"][0]["state"] = static_cast<int>(seat_state::stopping);
    state["seats"][0]["start_wanted"] = false;
    (void)ring::appoint(b.c(), 0);  // of its successor, when its own words were revoked
    b.adopt(state);
    CHECK(b.first().machine.state() == seat_state::down);
    CHECK_FALSE(b.first().start_wanted);
}

TEST_CASE("the CPU time of a process that was fenced after the last state file is counted exactly once") {
    restored_block b;
    b.adopt();
    nlohmann::json state = state_json(*b.table);
    const bool counted = GENERATE(false, true);
    process_record r;
    r.entry = 3;
    r.epoch = 1;
    r.cpu_counted = counted;
    state["seats"][0]["processes"] = process_records::value_type{r};
    b.enter(3, {static_cast<u32>(dead_pid()), 1, 0, entry_state::fenced}, 1);
    b.c().entry[3].cpu_ns.store(7);
    b.adopt(state);
    CHECK(b.first().counters.cpu_ns == (counted ? 0 : 7));
    CHECK(counters_of(*b.table, b.first()).cpu_ns == (counted ? 0 : 7));
    b.adopt(state_json(*b.table));
    CHECK(b.first().counters.cpu_ns == (counted ? 0 : 7));
}

TEST_CASE("counts, delays and frames given up outlive their supervisor") {
    restored_block b;
    b.adopt();
    nlohmann::json state = state_json(*b.table);
    state["seats"][0]["state"] = static_cast<int>(seat_state::down);
    state["seats"][0]["start_wanted"] = false;
    state["seats"][0]["pids"] = {11, 12};
    state["seats"][0]["restarts"] = 1;
    run::seat_counters counters;
    counters.exits["signal"] = 3;
    counters.takeovers.add(0.2);
    counters.cpu_ns = 5;
    state["seats"][0]["counters"] = counters;
    state["account"]["deaths"] = 9;
    state["account"]["kills_at"] = {1, 2, 3, 4, 5};
    state["account"]["domain_ends"] = 4;
    state["account"]["domain_restored"] = false;
    state["account"]["abandoned"] = {{{"ring_sequence", 70}, {"stage", "source"}, {"reason", "exit code 3"}}};
    b.adopt(state);
    CHECK(b.first().machine.state() == seat_state::down);
    CHECK_FALSE(b.first().start_wanted);
    CHECK(b.first().pids == std::vector<i32>{11, 12});
    CHECK(b.first().restarts == 1);
    CHECK(b.first().counters.exits.at("signal") == 3);
    CHECK(b.first().counters.takeovers.total() == 1);
    CHECK(b.first().counters.cpu_ns >= 5);
    CHECK(b.table->account.deaths == 9);
    CHECK(b.table->account.kills_at[4] == 5);
    CHECK(b.table->account.domain_ends == 4);
    CHECK_FALSE(b.table->account.domain_restored);
    REQUIRE(b.table->account.abandoned.size() == 1);
    CHECK(b.table->account.abandoned[0].ring_sequence == 70);
    for (const char* key : {"entry", "epoch", "pid", "start_time", "spawned_ns", "counted"}) {
        CAPTURE(key);
        nlohmann::json damaged = state;
        damaged["seats"][0]["processes"] = nlohmann::json::array({{{key, "a text"}}});
        CHECK_NOTHROW(b.adopt(damaged));
    }
    b.adopt(nlohmann::json{{"seats", 3}});  // a damaged file: reported, and counted from 0
    CHECK(b.table->account.deaths == 0);
    CHECK(b.first().start_wanted);
}

TEST_CASE("an adopter takes a process's MPS domain from its entry, or from a record of that process") {
    restored_block r;
    (void)r.adopt();
    mps_domain domain("/nonexistent", r.loop);
    r.table->domain = &domain;
    constexpr u32 at = 3;
    entry_word word;
    word.state = entry_state::standby;
    word.pid = 40;
    r.enter(at, word, 1);
    process_record recorded;
    recorded.entry = at;
    recorded.pid = 39;  // an earlier standby that had the entry; all standbys have epoch 0
    recorded.domain = 2;
    const auto adopted = [&] { return adopted_generation(*r.table, r.first(), {0, at, 0}, {recorded}); };
    CHECK(adopted() == 0);
    recorded.pid = 40;
    CHECK(adopted() == 2);
    r.c().entry[at].events_published.store(ring::published_in(5));
    CHECK(adopted() == 5);
    r.c().entry[at].events_published.store(~u64{0});  // damaged
    CHECK(adopted() == 2);
    r.table->domain = nullptr;
}
