// Stages that remember: source, middle and sink keep a running hash of all frames as their state, and give it
// out (number_stage.cpp). So the hash of a disturbed run equals that of an undisturbed one only if each state
// was computed from the one before it, whichever process made that.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <random>

#include "core/errors.hpp"
#include "ledger/ledger.hpp"
#include "ring/words.hpp"
#include "shm/segment.hpp"
#include "tests/crash/crash_drive.hpp"
#include "tests/crash/number_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/seed.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

const std::string remembers = "state = true\n";

std::string stateful(const std::string& name, const std::string& keys, const std::string& middle = "") {
    return number_pipeline(name, keys, remembers + middle, remembers, remembers);
}

/// Kills source, middle and sink in random order, `kills` processes in all. Returns how many it has killed.
u32 kill_at_random(run_fixture& run, u32 kills, u64 seed) {
    std::mt19937_64 random(seed);
    constexpr const char* victims[] = {"numbers", "middle", "sink"};
    i32 last[3] = {};
    u32 done = 0;
    while (done < kills && run.running()) {
        const u32 k = random() % 3;
        const i32 pid = run.pid_of(victims[k]);
        if (pid > 0 && pid != last[k] && ::kill(pid, SIGKILL) == 0) ++done, last[k] = pid;
        sleep_s(static_cast<f64>(random() % 1000) / 25'000.0);
    }
    return done;
}

/// What a sink has delivered: hashes by frame numbers.
std::map<u64, u64> delivered_hashes(const run_fixture& run, const std::string& sink) {
    std::map<u64, u64> all;
    const json r = run.report();
    for (const json& each : r["sinks"]) {
        if (each["stage"] != sink) continue;
        const auto ledger = telemetry::ledger_reader::open(each["ledger"].get<std::string>());
        REQUIRE(ledger);
        for (const telemetry::ledger_record& each_frame : ledger->read(0, r["frames"].get<u64>()))
            if (each_frame.commits != 0) all.emplace(each_frame.sequence_plus_1 - 1, each_frame.hash);
    }
    return all;
}

std::string refused(const std::string& text) {
    run_fixture run;
    std::string out;
    CHECK(run.command({"validate", run.pipeline("bad", text)}, out) == exit_code::usage);
    return out;
}

}  // namespace

TEST_CASE("states survive a kill at every named step of every role") {
    drive("kill", false, test_seed(), remembers);
}

TEST_CASE("states of stages that are killed at random are those of an undisturbed run") {
    const u64 seed = test_seed();
    CAPTURE(seed);
    run_fixture run;
    run.start(run.pipeline("random", stateful("random", patient_keys, "work_ms = 1\n")));
    REQUIRE(run.wait_running());
    const u32 kills = scaled(40);
    REQUIRE(kill_at_random(run, kills, seed) == kills);
    CHECK(undisturbed_hash(50, remembers) != undisturbed_hash(50));  // the states are in the hash
    end_intact(run, kills, remembers);
}

TEST_CASE("a standby continues from the state of the process that it replaces") {
    const u64 seed = test_seed();
    CAPTURE(seed);
    run_fixture run;
    const std::string standby = remembers + "standby = true\n";
    run.start(run.pipeline("warm", number_pipeline("warm", patient_keys, standby, standby, standby)));
    REQUIRE(run.wait_running());
    kill_at_random(run, 20, seed);
    end_intact(run, 10, remembers);
}

TEST_CASE("a supervisor that takes a run over keeps the states, also of stages that die before") {
    run_fixture run;
    const std::string file =
        run.pipeline("adopted", stateful("adopted", "fps = 400\nsupervisor_grace_s = 20\n"));
    run.start(file);
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    const i32 middle = run.pid_of("middle"), numbers = run.pid_of("numbers");
    run.signal(SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    REQUIRE(::kill(middle, SIGKILL) == 0);
    run.start(file);
    REQUIRE(run.wait_running());
    CHECK(run.pid_of("numbers") == numbers);  // adopted
    REQUIRE(makes_progress(run));
    end_intact(run, 1, remembers);
}

TEST_CASE("a tombstone keeps the state, whatever happens around it") {
    const std::string dies = "die_at = 60\ndie_how = \"abort\"\nmax_attempts = 2\n";
    const auto hash_of = [&](const std::string& name, u32 kills) {
        run_fixture run;
        run.start(run.pipeline(name, stateful(name, "fps = 400\n", dies)), {"--frames", "200"});
        if (kills > 0 && run.wait_running()) kill_at_random(run, kills, test_seed());
        CHECK(run.wait() == exit_code::frames_abandoned);
        INFO(run.log());
        const json r = run.report();
        CHECK(r["lost"] == 0);
        CHECK(r["repeated"] == 0);
        CHECK(r["torn"] == 0);
        CHECK(r["dead_letters"].size() == 1);
        CHECK(r["frames"] == 200);
        // The dead letter has the state before the frame, too.
        std::string out;
        CHECK(run.command({"replay", "--dead-letter", "60", "--prefix", "env NUMBER_REPAIRED=1"}, out) ==
              exit_code::ok);
        CHECK_THAT(out, contains("succeeded") && !contains("has no state"));
        return r["image_hash"].get<std::string>();
    };
    CHECK(hash_of("calm", 0) == hash_of("killed", 4));
}

TEST_CASE("a stage that writes to the previous state ends, and the state is not harmed") {
    run_fixture run;
    run.start(run.pipeline("written",
                           stateful("written", "fps = 400\n",
                                    "die_at = 30\ndie_how = \"scribble_state\"\ndie_incarnations = 1\n")),
              {"--frames", "200"});
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK_THAT(run.log(), contains("middle.state"));
    check_whole(run, 200, undisturbed_hash(200, remembers), 1);
}

TEST_CASE("a viewer is given the ring of states like any other ring") {
    run_fixture run;
    run.start(run.pipeline("shown", stateful("shown", "fps = 400\n")));
    REQUIRE(run.wait_running());
    for (const char* ring : {"middle.state", "sink.state"}) {
        const json answer = run.ask({{"type", "tap"}, {"stage", ring}});
        INFO(answer.dump());
        CHECK(answer["ok"] == true);
        CHECK(answer["format"]["planes"][0]["name"] == "hash");
    }
    end_intact(run, 0, remembers);
}

TEST_CASE("readers of every, each third, the newest and a sampled state get it whole despite kills") {
    const u64 seed = test_seed();
    CAPTURE(seed);
    run_fixture run;
    const auto reader = [](const std::string& name, const std::string& more) {
        return number_stage(name, "middle.state", "sink = true\n" + more);
    };
    run.start(run.pipeline(
        "read",
        number_pipeline("read", patient_keys, remembers, remembers, "sampled = [\"middle.state\"]\n") +
            reader("every", "") + reader("third", "every = 3\n") + reader("newest", "group = \"latest\"\n")));
    REQUIRE(run.wait_running());
    std::mt19937_64 random(seed);
    for (u32 k = 0; k < 8; ++k) {
        run.hit(std::vector<std::string>{"middle", "every", "third", "newest", "sink"}[random() % 5],
                SIGKILL);
        REQUIRE(run.wait_running());
        sleep_s(static_cast<f64>(random() % 1000) / 25'000.0);
    }
    REQUIRE(makes_progress(run));
    CHECK(run.stage("newest").value("frames", u64{0}) > 0);
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_undamaged(run.report());
    CHECK(run.report()["dead_letters"].empty());
    const auto sink = delivered_hashes(run, "sink"), third = delivered_hashes(run, "third");
    CHECK(sink.size() == run.report()["frames"]);
    CHECK((delivered_hashes(run, "every") == sink));  // the output is the state's first word
    CHECK(third.size() == (sink.size() + 2) / 3);
    CHECK(std::includes(sink.begin(), sink.end(), third.begin(), third.end()));
}

TEST_CASE("a stage with state and two instances is refused with the reason") {
    CHECK_THAT(refused(stateful("two", "", "instances = 2\n")),
               contains("stage \"middle\" has 2 instances and a state; each state is computed from that of "
                        "the frame before, so only one process can make them: set instances = 1"));
}

TEST_CASE("a sink with state gets every frame, and its states are read by their name") {
    CHECK_THAT(
        refused(number_pipeline("every", "", "", "", remembers + "every = 2\n")),
        contains("stage \"sink\" has a state, which is computed from every frame: remove the key every"));
    const std::string after = number_pipeline("after", "", "", "", remembers);
    CHECK_THAT(refused(after + number_stage("last", "sink", "sink = true\n")),
               contains("stage \"last\" reads \"sink\", which has no output in addition to its state: write "
                        "\"sink.state\" for that"));
}

TEST_CASE("the states of a run under load continue after each rebuild") {
    run_fixture run;
    run.start(run.pipeline("rebuilt", stateful("rebuilt", "fps = 400\n")));
    REQUIRE(run.wait_running());
    for (u32 k = 0; k < 3; ++k) {
        REQUIRE(makes_progress(run));
        CHECK(run.ask({{"type", "rebuild"}})["ok"] == true);
    }
    REQUIRE(makes_progress(run));
    end_intact(run, 0, remembers);
    CHECK(run.report()["rebuilds"] == 3);
}

TEST_CASE("after damage, frames with states continue from memory, and the report names uncertain ones") {
    run_fixture run;
    run.start(run.pipeline("damaged", stateful("damaged", "fps = 200\n")), {"--frames", "300"});
    REQUIRE(run.wait_running());
    REQUIRE(makes_progress(run));
    shm::segment::attach(run.ask({{"type", "ps"}})["pipeline"].value("run_id", ""))
        .block()
        .end.store(ring::end_unknown);
    CHECK(run.wait(40) == 0);
    INFO(run.log());
    check_whole(run, 300, undisturbed_hash(300, remembers), 0);
    const json r = run.report();
    REQUIRE(r["repairs"].size() == 1);
    CHECK(r["repairs"][0]["uncertain"].is_array());
}
