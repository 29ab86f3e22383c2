// A control block into which a broken process has written, and a stalled run: detected, reported, repaired,
// counted; a stage that has a reason to wait is not disturbed. The test is the broken process: it maps the
// block as any process of the user can.
#include <fmt/format.h>

#include <csignal>
#include <thread>

#include "core/clock.hpp"
#include "ring/words.hpp"
#include "shm/segment.hpp"
#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

constexpr u64 frames = 500;
// No stall is expected here unless a test has its own keys: a slow machine may pause for a moment.
constexpr const char* keys = "fps = 200\nstall_timeout_ms = 5000\n";

/// A run of numbers, some frames in progress.
struct damaged_run {
    run_fixture run;
    explicit damaged_run(const std::string& name, const std::string& more = keys,
                         const std::string& middle = "", u64 all = frames, const std::string& source = "",
                         const std::vector<std::string>& environment = {}) {
        run.start(run.pipeline(name, number_pipeline(name, more, middle, source)),
                  {"--frames", std::to_string(all)}, environment);
        REQUIRE(run.wait_running());
        REQUIRE(run.wait_until([&] {
            return run.ask({{"type", "ps"}})["pipeline"].value("frames", u64{0}) > 30;
        }));
    }
    /// The write of the broken process.
    template <typename F>
    void write(F&& fn) {
        shm::segment s = shm::segment::attach(run.ask({{"type", "ps"}})["pipeline"].value("run_id", ""));
        fn(s.block());
    }
    json ends_intact() {
        CHECK(run.wait(40) == 0);
        INFO(run.log());
        json r = run.report();
        REQUIRE(r.contains("frames"));
        CHECK(r["frames"] == frames);
        CHECK(r["lost"] == 0);
        CHECK(r["repeated"] == 0);
        CHECK(r["torn"] == 0);
        CHECK(run.leftovers() == "");
        return r;
    }
};

/// One lane of the middle waits for a process that never existed.
void name_unknown_process(shm::control_block& c) {
    const shm::seat_block& s = c.seat[1];
    shm::word& at = c.job[s.first_job + s.jobs - 1];
    u64 raw = ring::load(at);
    while (ring::job_word::of(raw).state != ring::job_state::idle) raw = ring::load(at);
    const ring::job_word w = ring::job_word::of(raw);
    at.store(ring::job_word{w.version, 4711, ring::job_state::idle}.pack());
}

}  // namespace

TEST_CASE("a run whose END word was overwritten ends at the intended frame and reports the damage") {
    damaged_run d("beyond");
    d.write([](shm::control_block& c) { c.end.store(ring::end_unknown); });
    const json r = d.ends_intact();
    CHECK(r["damaged"] == 1);
    REQUIRE(r["repairs"].size() == 1);
    CHECK(r["repairs"][0]["uncertain"].is_null());  // they were made once more
    CHECK_THAT(r["repairs"][0]["found"][0].get<std::string>(),
               contains("the run: end is unknown, the supervisor has set 500"));
    CHECK_THAT(d.run.log(), contains("the control block is damaged (the run: end"));
}

TEST_CASE("a frame that is erased from its ring stops no stage for longer than stall_timeout_ms") {
    damaged_run d("wiped", "fps = 200\nstall_timeout_ms = 700\n");
    d.write([](shm::control_block& c) {  // every buffer downstream of the source is free again, for any
                                         // previous contents
        for (u32 k = 0; k < c.link[0].slots; ++k) {
            const ring::slot_word w = ring::slot_word::of(ring::load(c.link[0].slot[k]));
            c.link[0].slot[k].store(w.freed().pack());
        }
        shm::word& number = c.source[0].sequence_lease[ring::load(c.link[0].tail) % c.link[0].window];
        ring::lease_word w = ring::lease_word::of(ring::load(number));
        ++w.generation;  // and its number is done
        number.store(w.pack());
    });
    const json r = d.ends_intact();
    CHECK(r["stalls"].get<u64>() + r["damaged"].get<u64>() == 1);
    REQUIRE(!r["repairs"].empty());
    CHECK(!r["repairs"][0]["found"].empty());
    CHECK(!r["problems"].empty());
}

TEST_CASE("frames from another host are not repeated after damage, and uncertain ones are named") {
    // By its own description the source receives: it ends its stream, and forwards.
    damaged_run d("sent", keys, "", frames, fmt::format("ends_at = {}\nforwards_frames = true", frames));
    d.write([](shm::control_block& c) { c.end.store(ring::end_unknown); });
    const json r = d.ends_intact();
    REQUIRE(r["repairs"].size() == 1);
    REQUIRE(r["repairs"][0]["uncertain"].is_array());
    const u64 first = r["repairs"][0]["uncertain"][0], last = r["repairs"][0]["uncertain"][1];
    CHECK(last >= 30);
    CHECK(first <= last);
    // A frame that is READY at the damage continues from memory.
    const u64 again = r["repairs"][0]["frame"];
    CHECK(again <= last + 1);
    CHECK_THAT(d.run.log(),
               contains(fmt::format("frames {} to {} were delivered and may be wrong, because words of the "
                                    "control block were damaged; they can't be repeated",
                                    first, again - 1)));
    if (again <= last)
        CHECK_THAT(d.run.log(), contains(fmt::format("frames {} to {} continue from memory and may be wrong",
                                                     again, last)));
}

TEST_CASE("static parts and seats' words are checked all the time, before a new process reads them") {
    damaged_run d("static");
    d.write([](shm::control_block& c) { c.magic.store(7); });
    CHECK(d.run.wait_until(
        [&] {
            return d.run.log().find("the block's head: magic was changed since the start") !=
                   std::string::npos;
        },
        5));
    d.write([](shm::control_block& c) { c.stage[1].input_link[0] = 4000; });
    d.run.wait_until([&] { return d.run.log().find("input_link") != std::string::npos; }, 5);
    REQUIRE(d.run.wait_running());
    d.write([](shm::control_block& c) { c.seat[2].current.store(~u64{0}); });
    const json r = d.ends_intact();
    CHECK(r["damaged"] == 2);
    CHECK(r["rebuilds"] == 2);
    CHECK(r["words_repaired"] == 1);
    CHECK_THAT(d.run.log(), contains("seat of sink: current"));
}

TEST_CASE("unneeded names and parameter sets are restored, and the run continues") {
    damaged_run d("shown");
    d.write([](shm::control_block& c) {
        for (u32 k = 1; k < shm::max_parameter_sets; ++k) c.parameters.set[k].value[k] ^= std::byte{4};
        c.parameters.set[5].from ^= u64{1} << 40U;
        c.stage[1].name[0] ^= 2;
        c.link[0].group_stage[0] ^= 1U << 20U;
        c.created_ns ^= 8;
    });
    CHECK(d.run.wait_until([&] { return d.run.log().find("changed since the start") != std::string::npos; },
                           5));
    const json r = d.ends_intact();
    CHECK(r["rebuilds"] == 0);
    CHECK(r["damaged"] == 0);
    CHECK(r["words_repaired"].get<u64>() >= shm::max_parameter_sets - 1 + 3);
}

TEST_CASE("a word that can't be is found within about a second, though frames move on, and is named") {
    damaged_run d("idle", keys, "in_flight = 3\n");
    d.write(name_unknown_process);
    // The run has two seconds left: a supervisor that checks much later ends it without reporting this.
    CHECK(d.run.wait_until([&] { return d.run.log().find("has epoch 4711") != std::string::npos; }, 10));
    const json r = d.ends_intact();
    CHECK(r["damaged"] == 1);
    CHECK(r["stalls"] == 0);
    CHECK_THAT(d.run.log(),
               contains("the control block is damaged (job ") && contains("(middle) has epoch 4711"));
}

TEST_CASE("an invalid word is found at a process's death without waiting for the periodic check") {
    damaged_run d("death", "fps = 100\nstall_timeout_ms = 5000\n", "in_flight = 3\n", frames, "",
                  {"CAROUSEL_TEST_AUDITS_AT_DEATHS_ALONE=1"});
    d.write(name_unknown_process);
    sleep_s(1.5);
    CHECK(d.run.log().find("has epoch 4711") == std::string::npos);
    d.run.hit("sink", SIGKILL);
    CHECK(d.run.wait_until([&] { return d.run.log().find("has epoch 4711") != std::string::npos; }, 10));
    const json r = d.ends_intact();
    CHECK(r["damaged"] == 1);
    CHECK(r["stalls"] == 0);
}

TEST_CASE("a pace that lies an hour ahead is not waited for") {
    damaged_run d("pace");
    d.write([](shm::control_block& c) { c.next_source_ns[0].store(now_ns() + 3600 * ns_per_s); });
    const json r = d.ends_intact();
    CHECK(r["damaged"] == 1);
    CHECK_THAT(d.run.log(), contains("next_source_ns"));
}

TEST_CASE("a paused stage, a slow frame and a low rate are reasons to wait and cause no rebuild") {
    damaged_run paused("held", "fps = 200\nstall_timeout_ms = 2000\n");
    std::string out;
    REQUIRE(paused.run.command({"stop", "middle", "-p", "held"}, out) == 0);
    CHECK(paused.run.wait_until(
        [&] { return paused.run.log().find("middle is paused") != std::string::npos; }, 10));
    sleep_s(3);
    REQUIRE(paused.run.command({"cont", "middle", "-p", "held"}, out) == 0);
    json r = paused.ends_intact();
    CHECK(r["rebuilds"] == 0);

    run_fixture slow;
    slow.start(
        slow.pipeline("slow", number_pipeline("slow", "stall_timeout_ms = 300\nframe_timeout_ms = 20000\n",
                                              "work_ms = 1500\nin_flight = 1\n")),
        {"--frames", "3"});
    CHECK(slow.wait(40) == 0);
    CHECK(slow.report()["rebuilds"] == 0);
    CHECK_THAT(slow.log(), contains("middle is processing a frame"));

    run_fixture paced;
    paced.start(paced.pipeline("paced", number_pipeline("paced", "stall_timeout_ms = 300\nfps = 0.7\n")),
                {"--frames", "4"});
    CHECK(paced.wait(40) == 0);
    CHECK(paced.report()["rebuilds"] == 0);
    CHECK(paced.log().find("no frame has moved") == std::string::npos);
}

TEST_CASE("a block that is damaged repeatedly ends the run with an error of the live supervisor") {
    damaged_run d("again");
    const std::string id = d.run.ask({{"type", "ps"}})["pipeline"].value("run_id", "");
    const u64 until = now_ns() + 40 * ns_per_s;
    while (d.run.running() && now_ns() < until) {
        try {
            shm::segment::attach(id).block().end.store(3);
        } catch (const std::exception&) {  // between two blocks
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(d.run.wait(10) == 1);
    CHECK_THAT(d.run.log(), contains("was rebuilt 3 times, and no frame was delivered in between"));
    CHECK(d.run.leftovers() == "");
}
