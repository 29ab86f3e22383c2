// Deaths that a random kill hardly ever causes: after the END of the first ring, a viewer's thirteenth
// incarnation, an adopter in the middle of its work. Each is caused at a named step, or awaited in the
// control block.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "core/clock.hpp"
#include "ring/participants.hpp"
#include "ring/words.hpp"
#include "shm/process_id.hpp"
#include "shm/segment.hpp"
#include "tests/crash/crash_drive.hpp"
#include "tests/crash/number_run.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;
using enum crash_point;
using ring::load;

const std::vector<std::string> endless{"--frames", "100000000"};

/// Whether this line of the plan (from 1) has happened.
bool has_fired(const run_fixture& run, std::size_t line) {
    return std::filesystem::exists(fmt::format("{}.{}", run.path("plan"), line));
}

}  // namespace

// ---- the end of a run

TEST_CASE("a sink that dies after all other rings reached EOS has a successor that delivers the rest") {
    constexpr u64 frames = 200;
    const auto text = [](const std::string& name) {
        return number_pipeline(name, "fps = 400\nframe_timeout_ms = 60000\n") +
               number_stage("aside", "numbers") + number_stage("aside_sink", "aside", "sink = true\n");
    };
    run_fixture calm;
    calm.start(calm.pipeline("calm", text("calm")), {"--frames", std::to_string(frames)});
    REQUIRE(calm.wait() == 0);
    // One victim whose ring lies between the others, and one whose ring is the last: neither the first nor
    // the last ring is representative of all.
    const std::string victim = GENERATE("sink", "aside_sink");
    const std::string unfinished = victim == "sink" ? "middle" : "aside";
    CAPTURE(victim);
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add(victim, job_chosen, "stop", frames - 2);  // fewer frames are left than its ring has slots for
    plan.write();
    run.start(run.pipeline("rest", text("rest")), {"--frames", std::to_string(frames)}, {plan.environment()});
    REQUIRE(run.wait_running());
    const shm::segment s = map_block(run);
    const shm::control_block& c = s.block();
    REQUIRE(c.links == 3);
    REQUIRE(run.wait_until([&] {
        return std::all_of(c.link, c.link + c.links, [&](const shm::link_block& l) {
            return unfinished == l.name || load(l.tail) == frames;
        });
    }));
    CHECK(load(link_of(s, unfinished).tail) < frames);
    u64 last = load(c.supervisor_heartbeat_ns);
    for (int tick = 0; tick < 3; ++tick) {  // it has had the time to be wrong about the end
        REQUIRE(run.wait_until([&] { return load(c.supervisor_heartbeat_ns) != last; }));
        last = load(c.supervisor_heartbeat_ns);
    }
    run.hit(victim, SIGKILL);
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, frames, calm.report()["image_hash"], 1);
    CHECK(run.report()["ending"] == "complete");
    CHECK(run.report()["deaths"] == 1);
}

// ---- members of latest groups

namespace {
u32 places_taken(const shm::link_block& l) {
    return static_cast<u32>(std::count_if(
        l.group_state + shm::max_blocking, l.group_state + shm::max_groups,
        [](const shm::word& w) { return ring::group_word::of(load(w)).state == ring::group_state::latest; }));
}

std::string watched(const std::string& name, u32 latest_lease_ms) {
    return number_pipeline(
               name,
               fmt::format("{}stall_timeout_ms = 0\nlatest_lease_ms = {}\n", crash_keys, latest_lease_ms),
               "in_flight = 1\n") +
           number_stage("watcher", "middle", "sink = true\ngroup = \"latest\"\n");
}

u64 frames_seen(run_fixture& run) { return run.stage("watcher").value("frames", u64{0}); }
}  // namespace

TEST_CASE("a latest reader that dies twelve times with a frame leaks neither a place nor a buffer") {
    constexpr std::size_t deaths = 12;
    static_assert(deaths > shm::max_latest);
    std::mt19937_64 random(test_seed());
    run_fixture run;
    crash_plan plan(run.path("plan"));
    for (std::size_t k = 0; k < deaths; ++k)
        plan.add("watcher", k % 2 == 0 ? latest_leased : latest_read, "kill", 5 + random() % 10);
    plan.write();
    // No lease becomes stale: what a dead process has leased returns only when the process is dismissed.
    run.start(run.pipeline("mortal", watched("mortal", 60'000)), endless, {plan.environment()});
    REQUIRE(run.wait_running());
    const shm::segment s = map_block(run);
    REQUIRE(link_of(s, "middle").slots < deaths);
    for (std::size_t k = 1; k <= deaths; ++k) {
        CAPTURE(k);
        REQUIRE(run.wait_until([&] { return has_fired(run, k); }, 10));
        const u64 before = frames_seen(run);  // read by the dead one: further frames are read by a successor
        REQUIRE(run.wait_until([&] { return frames_seen(run) > before; }, 10));
    }
    CHECK(places_taken(link_of(s, "middle")) == 1);
    const u64 delivered = load(link_of(s, "middle").tail);
    CHECK(run.wait_until([&] { return load(link_of(s, "middle").tail) > delivered + 50; }, 10));
    end_intact(run, 0);
    CHECK(run.report()["restarts"] == deaths);  // the block was not rebuilt: that would free everything, too
}

TEST_CASE("a latest reader stopped with a frame loses its lease, blocks no stage and reads on later") {
    constexpr u32 lease_ms = 1500;
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("watcher", latest_leased, "stop", 30);
    plan.write();
    run.start(run.pipeline("paused", watched("paused", lease_ms)), endless, {plan.environment()});
    REQUIRE(run.wait_running());
    const i32 watcher = run.pid_of("watcher");
    REQUIRE(watcher > 0);
    const shm::segment s = map_block(run);
    const shm::link_block& l = link_of(s, "middle");
    REQUIRE(run.wait_until([&] { return has_fired(run, 1) && shm::is_stopped(watcher); }));
    u32 slot = shm::none, group = shm::none;
    for (u32 k = 0; k < l.slots; ++k)
        for (u32 g = shm::max_blocking; g < shm::max_groups; ++g)
            if (ring::lease_word::of(load(l.group[k][g])).state == ring::lease_state::leased)
                slot = k, group = g;
    REQUIRE(slot != shm::none);
    const u64 held = load(l.group[slot][group]), since = load(l.lease_since_ns[group]), tail = load(l.tail);
    const u32 generation = ring::slot_word::of(load(l.slot[slot])).generation;
    CHECK(run.wait_until([&] { return load(l.tail) > tail + u64{3} * l.slots; }));
    CHECK(load(l.group[slot][group]) == held);  // the ring has made a full lap since then
    CHECK(run.wait_until([&] { return load(l.group[slot][group]) != held; }));
    const u64 after_ms = (now_ns() - since) / ns_per_ms;
    fmt::print("the lease was revoked after {} ms\n", after_ms);
    CHECK(after_ms >= lease_ms);
    CHECK(after_ms < lease_ms + 1000);
    CHECK(run.wait_until([&] {
        return ring::slot_word::of(load(l.slot[slot])).generation != generation;
    }));  // it is used again
    CHECK(shm::is_stopped(watcher));
    CHECK(run.pid_of("watcher") == watcher);
    u64 seen = frames_seen(run);
    REQUIRE(::kill(watcher, SIGCONT) == 0);
    CHECK(run.wait_until([&] { return frames_seen(run) > seen; }));
    CHECK(places_taken(l) == 1);
    end_intact(run, 0);
    CHECK(run.report()["restarts"] == 0);
}

// ---- three supervisors

namespace {
constexpr u64 orphaned_frames = 600;

void start_orphan(run_fixture& run, const crash_plan& plan) {
    const std::string text =
        number_pipeline("three", std::string(patient_keys) + "supervisor_grace_s = 20\n");
    run.start(run.pipeline("three", text), {"--frames", std::to_string(orphaned_frames)},
              {plan.environment()});
}

/// The first supervisor dies after it has appointed an entry for the successor of `middle` and before it has
/// notified any process of it. The plan's first line.
void kill_first_supervisor(run_fixture& run, const crash_plan& plan) {
    start_orphan(run, plan);
    REQUIRE(run.wait_running());
    run.hit("middle", SIGKILL);
    REQUIRE(run.wait(20) == -SIGKILL);
    REQUIRE(has_fired(run, 1));
}

void last_supervisor_ends_run(run_fixture& run, const crash_plan& plan, const std::string& hash) {
    start_orphan(run, plan);
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK_THAT(run.log(), contains("adopted three: 2 stages alive"));
    CHECK(plan.pending_lines() == "");
    check_whole(run, orphaned_frames, hash, 1);
    CHECK(run.report()["ending"] == "complete");
    CHECK(run.report()["deaths"] == 1);
}
}  // namespace

TEST_CASE("an adopter that dies at any step of taking over an unclaimed entry has a working successor") {
    const std::string hash = undisturbed_hash(orphaned_frames);
    struct step {
        crash_point point;
        u64 nth;
    };
    // The unclaimed entry passes them first, the dead process on the same seat second.
    for (const auto& [point, nth] :
         {step{entry_prepared, 1}, step{entry_appointed, 1}, step{entry_doomed, 1}, step{words_revoked, 1},
          step{words_requeued, 1}, step{entry_fenced, 1}, step{entry_fenced, 2}, step{words_reclaimed, 1},
          step{words_reclaimed, 2}, step{run_taken_over, 1}}) {
        CAPTURE(std::string(name_of(point)), nth);
        run_fixture run;
        crash_plan plan(run.path("plan"));
        plan.add("supervisor", entry_appointed, "kill", 4);  // the first three are the start's
        plan.add("supervisor", point, "kill", nth);
        plan.write();
        kill_first_supervisor(run, plan);
        start_orphan(run, plan);
        REQUIRE(run.wait(20) == -SIGKILL);
        REQUIRE(plan.pending_lines() == "");
        last_supervisor_ends_run(run, plan, hash);
    }
}

// An adopter's first change is the withdrawal of an unclaimed entry (STARTING -> FENCED), its second one
// takes that entry to DOOMED. The few instructions in between have no name and make no system call, so the
// adopter that dies there is this process: it makes the first change, with the product's own function, and
// nothing else.
TEST_CASE("an adopter that dies between FENCED and DOOMED of an unclaimed entry has a successor") {
    const std::string hash = undisturbed_hash(orphaned_frames);
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("supervisor", entry_appointed, "kill", 4);
    plan.write();
    kill_first_supervisor(run, plan);
    {
        const shm::segment s = shm::segment::attach(run.run_id());
        shm::control_block& c = s.block();
        const ring::seat_word sits = ring::seat_word::of(load(c.seat[seat_of(c, "middle")].current));
        REQUIRE(sits.entry < shm::max_incarnations);
        const ring::entry_word before = ring::entry_word::of(load(c.entry[sits.entry].identity));
        REQUIRE(before.state == ring::entry_state::starting);
        REQUIRE(before.pid == 0);
        REQUIRE(ring::withdraw(c, sits.entry));
        REQUIRE(load(c.entry[sits.entry].identity) == before.with(ring::entry_state::fenced).pack());
    }
    last_supervisor_ends_run(run, plan, hash);
}
