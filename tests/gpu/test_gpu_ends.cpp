// Stages with more than one input and one output, on a GPU: several outputs and a join after them, a sampled
// input, and a port that frames skip while it has no program.
#include <fmt/format.h>

#include <csignal>
#include <fstream>
#include <random>

#include "core/errors.hpp"
#include "tests/crash/port_programs.hpp"
#include "tests/gpu/gpu_run.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

std::string on_device(const std::string& name, const std::string& keys = "fps = 400\n") {
    const char* device = std::getenv("CAROUSEL_TEST_DEVICE");
    return fmt::format("[pipeline]\nname = \"{}\"\ndevice = \"{}\"\nsize = [16, 16]\n{}", name,
                       device != nullptr ? device : "cuda:0", keys);
}

std::string stage_of(const std::string& name, const std::string& program, const std::string& keys = "") {
    return fmt::format("[[stage]]\nname = \"{}\"\nrun = \"{}/{}\"\n{}", name, programs(), program, keys);
}

std::string forked(const std::string& name, const std::string& fork = "", const std::string& more = "") {
    const char* const program = "carousel-test-device-fork";
    return on_device(name) + stage_of("numbers", program) +
           stage_of("fork", program, "inputs = [\"numbers\"]\n" + fork) +
           stage_of("join", program, "inputs = [\"fork\", \"fork.square\"]\n") + more;
}

/// N kills of the victims in the order of a seed; each is seen to be another process.
void kill_at_random(run_fixture& run, u32 kills, const std::vector<std::string>& victims) {
    std::mt19937_64 random(test_seed());
    i32 last = 0;
    for (u32 done = 0; done < kills && run.running();) {
        const i32 pid = run.pid_of(victims[random() % victims.size()]);
        if (pid > 0 && pid != last && ::kill(pid, SIGKILL) == 0) ++done, last = pid;
        sleep_s(static_cast<f64>(random() % 1000) /
                2'000.0);  // a process with a context takes that long to start
    }
}

json ended(run_fixture& run) {
    run.signal(SIGINT);
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    const json r = run.report();
    REQUIRE(r.contains("frames"));
    check_undamaged(r);
    CHECK(r["dead_letters"].empty());
    return r;
}

}  // namespace

TEST_CASE("a fork, its join and source on a GPU, killed at random, lose, repeat and tear nothing") {
    run_fixture run;
    run.start(run.pipeline("forked", forked("forked")));
    REQUIRE(run.wait_running());
    kill_at_random(run, 30, {"fork", "fork", "join", "numbers"});
    const json r = ended(run);
    CHECK(r["restarts"].get<u32>() >= 15);
    CHECK(run.leftovers() == "");
    run_fixture calm;
    calm.start(calm.pipeline("calm", forked("calm")), {"--frames", r["frames"].dump()});
    CHECK(calm.wait(60) == 0);
    INFO(calm.log());
    CHECK(calm.report()["restarts"] == 0);
    CHECK(calm.report()["image_hash"] == r["image_hash"]);
    fmt::print("{} frames, {} restarts\n", r["frames"].dump(), r["restarts"].dump());
}

TEST_CASE("a kernel that writes beyond a slot of the second output ends its stage, which is named") {
    for (const char* guard : {"gap", "canary"}) {
        CAPTURE(guard);
        run_fixture run;
        const std::string more = fmt::format("[link.fork.square]\nguard = \"{}\"\n", guard);
        run.start(run.pipeline("over", forked("over", "overrun = 20\nmax_attempts = 2\n", more)),
                  {"--frames", "60"});
        CHECK(run.wait(60) == exit_code::frames_abandoned);
        INFO(run.log());
        const json r = run.report();
        check_undamaged(r);
        REQUIRE(r["dead_letters"].size() == 1);
        CHECK(r["dead_letters"][0]["ring_sequence"] == 20);
        for (const json& s : r["stages"])
            if (s["name"] != "fork") CHECK(s["restarts"] == 0);
        if (std::string(guard) == "canary") CHECK_THAT(run.log(), contains("ring fork.square, frame 20"));
    }
}

TEST_CASE("a stage with a sampled input on a GPU and its producer, killed, lose and tear nothing") {
    run_fixture run;
    const char* const program = "carousel-test-side";
    run.start(run.pipeline(
        "looked", on_device("looked") + stage_of("numbers", program) + stage_of("poses", program) +
                      stage_of("looker", program, "inputs = [\"numbers\"]\nsampled = [\"poses\"]\n") +
                      stage_of("sink", program,
                               fmt::format("inputs = [\"looker\"]\nsink = true\nreport_to = \"{}\"\n",
                                           run.path("reported"))) +
                      stage_of("watcher", program, "inputs = [\"poses\"]\nsink = true\n")));
    REQUIRE(run.wait_running());
    kill_at_random(run, 30, {"looker", "looker", "poses", "numbers", "sink"});
    REQUIRE(run.wait_running());
    std::ifstream sampled_file(run.path("reported"));
    u64 latest = 0;
    CHECK((sampled_file >> latest && latest > 0));
    const json r = ended(run);
    CHECK(r["restarts"].get<u32>() >= 15);
    CHECK_THAT(run.log(), !contains("is not whole") && !contains("went back"));
    CHECK(run.leftovers() == "");
    fmt::print("{} frames, {} restarts, the last latest frame {}\n", r["frames"].dump(), r["restarts"].dump(),
               latest);
}

TEST_CASE("frames on a GPU skip a port without a program if it skips, and wait otherwise") {
    run_fixture run;
    const std::string ports =
        "[[stage]]\nname = \"camera\"\nrun = \"port\"\noutput = { value = \"u64[65536]\" }\n"
        "[[stage]]\nname = \"analysis\"\nrun = \"port\"\ninputs = [\"camera\"]\nvacant = \"skip\"\n";
    run.start(run.pipeline(
        "skips", on_device("skips", "") + ports +
                     stage_of("witness", "carousel-test-device", "inputs = [\"camera\"]\nsink = true\n")));
    REQUIRE(run.wait_until([&] { return run.stage("camera").value("state", "") == "vacant"; }));
    const auto makes_progress = [&](const external_program& of) {
        const u64 then = of.frame();
        return run.wait_until([&] { return of.frame() > then; });
    };
    external_program writes(run, "writes", "carousel-test-port-io", {"write", "skips", "camera", "500"});
    INFO(writes.output());
    REQUIRE(makes_progress(writes));
    for (int k = 0; k < 5; ++k) {
        {
            external_program reads(run, "reads", "carousel-test-port-io", {"read", "skips", "analysis", "0"});
            REQUIRE(makes_progress(reads));
        }  // killed
        CHECK(makes_progress(writes));
        CHECK(makes_progress(writes));  // more than a ring holds
    }
    (void)ended(run);
    CHECK_THAT(run.log(), contains("port analysis has no program: frames skip it"));
}
