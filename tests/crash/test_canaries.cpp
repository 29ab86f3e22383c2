// Rings that are guarded by canaries: a write past a slot is found before its frame is passed on, for a death
// of any process meanwhile; one into a frame that has been passed on is reported as torn.
#include <algorithm>
#include <csignal>
#include <utility>

#include "control/mapped_ring.hpp"
#include "core/errors.hpp"
#include "device/canary.hpp"
#include "device/cpu/memfd.hpp"
#include "tests/crash/fork_run.hpp"
#include "tests/crash/number_run.hpp"
#include "tests/crash/overruns.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

constexpr const char* guards = "[link.numbers]\nguard = \"canary\"\n[link.middle]\nguard = \"canary\"\n";

/// The text without the line breaks of a narrow terminal.
std::string one_line(const std::string& text) {
    std::string out;
    for (const char c : text)
        if (const char plain = c == '\n' ? ' ' : c; plain != ' ' || !out.ends_with(' ')) out += plain;
    return out;
}

/// Returns whether the slot's frame waits for its reader.
bool waits(const shm::link_block& l, u32 slot) {
    const ring::slot_word s = ring::slot_word::of(ring::load(l.slot[slot]));
    const auto lease = ring::lease_word::of(ring::load(l.group[slot][0])).seen_at(s.generation);
    return s.state == ring::slot_state::ready && lease.state == ring::lease_state::wait;
}

/// A slot of the ring whose frame waits for its reader; `none` if there is no such slot.
u32 waiting_slot(const shm::link_block& l) {
    for (u32 k = 0; k < l.slots; ++k)
        if (waits(l, k)) return k;
    return shm::none;
}

/// A slot that is being filled, and a later one whose frame waits for its reader; `none` if there are none.
std::pair<u32, u32> filled_and_waiting_slot(const shm::link_block& l) {
    u32 filled = shm::none;
    for (u32 k = 0; k < l.slots; ++k) {
        if (ring::slot_word::of(ring::load(l.slot[k])).state == ring::slot_state::fill) filled = k;
        if (filled != shm::none && waits(l, k)) return {filled, k};
    }
    return {shm::none, shm::none};
}

}  // namespace

TEST_CASE("15 writes into canaries end only the writers, which are named, and no frame is damaged") {
    check_overruns("canaries", 15, 800, 300, guard_kind::canary);
}

TEST_CASE("a ring with canaries is reported as such in the plan, by ps and in the report") {
    run_fixture run;
    const std::string file =
        run.pipeline("told", number_pipeline("told", "fps = 200\n") + "[link.middle]\nguard = \"canary\"\n");
    std::string out;
    REQUIRE(run.command({"run", file, "--dry-run"}, out) == 0);
    const std::string line = one_line(out);
    CHECK_THAT(line, contains("outputs: guarded; a stage's write beyond its slot ends only that stage; by "
                              "canaries of 64 KiB, checked when the frame is complete, after the slots "
                              "of ring middle (guard = \"canary\")"));
    run.start(file, {});
    REQUIRE(run.wait_running());
    CHECK(run.stage("middle")["output_guarded"] == true);
    const json links = run.ask({{"type", "ps"}})["links"];
    CHECK(links[0]["guard"] == "gap");
    CHECK(links[1]["guard"] == "canary");
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    const json memory = run.report()["memory"];
    CHECK(memory[1]["guard"] == "canary");
    CHECK(memory[1]["bytes"] ==
          links[1]["slots"].get<u64>() * (links[1]["slot_bytes"].get<u64>() + device::canary_bytes));
}

TEST_CASE("a stage with canaries that dies at any step of a frame loses, repeats and tears nothing") {
    const std::string hash = test::undisturbed_hash(600);
    run_fixture run;
    crash_plan plan(run.path("plan"));
    u64 nth = 20;
    for (const char* stage : {"numbers", "middle"})
        for (const crash_point point :
             {crash_point::event_recorded, crash_point::work_complete, crash_point::host_work_done})
            plan.add(stage, point, "kill", nth += 7);
    plan.write();
    run.start(run.pipeline("steps", number_pipeline("steps", crash_keys) + guards), {"--frames", "600"},
              {plan.environment()});
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK(plan.pending_lines() == "");
    check_whole(run, 600, hash, plan.lines());
    CHECK(run.report()["stages"][0].value("helped", u64{0}) == 0);
}

TEST_CASE("a canary damaged after its frame's commit makes the frame torn once and fails the run") {
    const bool second = GENERATE(false, true);  // a fork's second ring is reported, and the fork as its maker
    const std::string keys = "fps = 400\n", reader = second ? "join" : "sink",
                      maker = second ? "fork" : "middle", name = second ? "fork.square" : "middle",
                      plane = second ? "list" : "value";
    run_fixture run;
    run.start(
        run.pipeline("late", second ? forked("late", keys, "", "[link.fork.square]\nguard = \"canary\"\n")
                                    : number_pipeline("late", keys) + guards),
        {"--frames", "300"});
    REQUIRE(run.wait_running());
    std::string out;
    REQUIRE(run.command({"stop", reader, "-p", "late"}, out) == 0);
    const shm::segment s = map_block(run);
    const shm::link_block& ring = link_of(s, name);
    REQUIRE(run.wait_until([&] { return waiting_slot(ring) != shm::none; }));
    const run::mapped_ring mapped =
        run::map_ring(s.block(), run.path("runtime") + "/carousel/late/control.sock", name);
    const device::memfd_mapping memory(mapped.memory, device::access::write);
    std::byte* const canary =
        memory.slot(waiting_slot(ring), ring.slot_bytes) + ring.slot_bytes - device::canary_bytes;
    canary[1000] ^= std::byte{1};
    CHECK(run.command({"cont", reader, "-p", "late"}, out) == 0);
    CHECK(run.wait() == exit_code::stage_failed);
    const std::string log = run.log();
    CHECK_THAT(
        log, contains(fmt::format(
                 "is torn: after plane {}, the last of its payload in the ring {}, 1000 bytes on, something "
                 "was written after its commit: possibly by {} while",
                 plane, name, maker)));
    const json r = run.report();
    CHECK(r["frames"] == 300);
    CHECK(r["torn"] == 1);
    CHECK(r["lost"] == 0);
    CHECK(r["repeated"] == 0);
    // The process that fills that slot next, if there is one, can't tell which process wrote there, and is
    // the only one that could have.
    CHECK(r["restarts"] <= 1);
    const bool found = log.find(fmt::format("a write beyond its slot in the ring {}, after plane {}, 1000 "
                                            "bytes after its end",
                                            name, plane)) != std::string::npos;
    CHECK((r["restarts"] == 1) == found);
}

TEST_CASE("instances that fill one ring plant a canary per frame, as another may have planted its own") {
    const std::string hash = test::undisturbed_hash(600);
    run_fixture run;
    run.start(run.pipeline("shared", number_pipeline("shared", "fps = 300\n", "instances = 2\n") + guards),
              {"--frames", "600"});
    REQUIRE(run.wait_running());
    const json first =
        run.stages()[1];  // the pattern of its successor differs from the pattern of the stage that continues
    REQUIRE(::kill(first["pid"].get<i32>(), SIGKILL) == 0);
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, 600, hash, 1);
    CHECK(run.report()["restarts"] == 1);
}

TEST_CASE("a wild write of a reader with a writable input harms no producer of that ring") {
    const std::string hash = test::undisturbed_hash(300);
    const char* const how = GENERATE("", "wild_write_in_process = true\nwork_ms = 1\n");
    CAPTURE(how);
    run_fixture run;
    run.start(run.pipeline("reader", number_pipeline(
                                         "reader", "fps = 400\n",
                                         fmt::format("writable_inputs = true\nwild_write_at = 50\n{}", how)) +
                                         guards),
              {"--frames", "300"});
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, 300, hash, 0);
    CHECK(run.report()["restarts"] == 0);
}

TEST_CASE("a wild write of a reader is not blamed on the producer of a frame that it started") {
    run_fixture run;
    const auto stage = [](const char* name, const char* rest) {
        return fmt::format("[[stage]]\nname = \"{}\"\nrun = \"{}/carousel-test-number\"\n{}", name,
                           programs(), rest);
    };
    run.start(
        run.pipeline(
            "two",
            "[pipeline]\nname = \"two\"\ndevice = \"cpu\"\nfps = 10\n" + stage("numbers", "") +
                stage("slow", "inputs = [\"numbers\"]\nsink = true\nwork_ms = 70\n") +
                stage("middle",
                      "inputs = [\"numbers\"]\nwritable_inputs = true\nwild_write_at = 10\nwork_ms = 40\n") +
                stage("sink", "inputs = [\"middle\"]\nsink = true\n") +
                "[link.numbers]\nguard = \"canary\"\n"),
        {"--frames", "20"});
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_undamaged(run.report());
    CHECK(run.report()["restarts"] == 0);
}

TEST_CASE("a stage with canaries whose standbys take over loses, repeats and tears nothing") {
    run_fixture run;
    run.start(run.pipeline("standby", number_pipeline("standby", crash_keys, "standby = true\n") + guards),
              {"--frames", "1500", "--fps", "300"});
    REQUIRE(run.wait_running());
    for (u32 k = 0; k < 5; ++k) {
        const i32 before = run.pid_of("middle");
        REQUIRE(::kill(before, SIGKILL) == 0);
        REQUIRE(run.wait_until(
            [&] { return run.pid_of("middle") != before && run.stage("middle")["state"] == "running"; }, 20));
    }
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, 1500, test::undisturbed_hash(1500), 5);
    for (const json& death : run.report()["recoveries"])
        CHECK_THAT(death.value("how", ""), !contains("exit code 73"));
}

TEST_CASE("a write through canaries into a waiting frame ends its writer and makes that frame torn") {
    run_fixture run;
    run.start(
        run.pipeline("through",
                     number_pipeline("through", "", "enqueue_ms = 40\n", "", "finish_ms = 60\n") + guards),
        {"--frames", "40"});
    REQUIRE(run.wait_running());
    const shm::segment s = map_block(run);
    const shm::link_block& ring = link_of(s, "middle");
    const run::mapped_ring mapped =
        run::map_ring(s.block(), run.path("runtime") + "/carousel/through/control.sock", "middle");
    const device::memfd_mapping memory(mapped.memory, device::access::write);
    const i32 writer = run.pid_of("middle");
    std::pair slots(shm::none, shm::none);
    // In the middle of process(): the canary is planted a moment after the slot is taken.
    REQUIRE(run.wait_until([&] {
        const auto seen = filled_and_waiting_slot(ring);
        if (seen.first == shm::none) return false;
        const u64 filled = ring::load(ring.slot[seen.first]);
        sleep_s(0.01);
        ::kill(writer, SIGSTOP);
        if (ring::load(ring.slot[seen.first]) == filled && waits(ring, seen.second)) slots = seen;
        if (slots.first == shm::none) ::kill(writer, SIGCONT);
        return slots.first != shm::none;
    }));
    std::byte* const canary =
        memory.slot(slots.first, ring.slot_bytes) + ring.slot_bytes - device::canary_bytes;
    std::byte* const frame = memory.slot(slots.second, ring.slot_bytes);
    std::fill(canary, frame + sizeof(device::status_word), std::byte{0xAA});
    ::kill(writer, SIGCONT);
    CHECK(run.wait() == exit_code::stage_failed);
    const std::string log = run.log();
    INFO(log);
    CHECK_THAT(log, contains("a write beyond its slot in the ring middle, after plane value, 0 bytes after"));
    CHECK_THAT(log,
               contains("is torn: its status word in the ring middle, which middle fills, changed under"));
    const json r = run.report();
    CHECK(r["frames"] == 40);
    CHECK(r["torn"] > 0);
    CHECK(r["lost"] == 0);
    CHECK(r["repeated"] == 0);
    CHECK(r["restarts"] == 1);
}
