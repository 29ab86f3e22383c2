// What the supervisor does for stages of one MPS domain: number stages on the CPU that it treats as clients
// (CAROUSEL_TEST_MPS_ON_CPU), and a fake daemon. What only a GPU can show is in tests/gpu/test_mps.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>

#include "core/errors.hpp"
#include "supervisor/policy/state_table.hpp"
#include "tests/crash/mps_run.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

constexpr const char* frames = "1000";  // four seconds: a busy machine takes one to execute a command

std::string shared(const std::string& name, const std::string& more = "", const std::string& middle = "") {
    return number_pipeline(name, "isolation = \"mps\"\nfps = 250\n" + more, middle);
}

void check_whole(run_fixture& run, u64 domain_faults, bool abandoned = false) {
    const json r = run.report();
    INFO(run.log());
    check_undamaged(r);
    CHECK(r["image_hash"] == undisturbed_mps_hash(frames));
    CHECK(r["dead_letters"].empty());
    CHECK(r["mps"]["domain_faults"] == domain_faults);
    CHECK(r["mps"]["abandoned"] == abandoned);
    CHECK(run.leftovers() == "");
}

std::string text_of(const std::string& path) { return read_file(path).value_or(""); }

bool all_replaced(run_fixture& run, const std::vector<i32>& before) {
    return run.wait_until([&] {
        for (std::size_t k = 0; k < mps_stages.size(); ++k) {
            const json s = run.stage(mps_stages[k]);
            if (!s.contains("pid") || !s["pid"].is_number() || s["pid"] == before[k] ||
                s["state"] != "running")
                return false;
        }
        return true;
    });
}

/// Each stage's current process has delivered a frame, and the supervisor has seen it.
bool all_deliver(run_fixture& run) {
    return run.wait_until([&] {
        const std::string log_text = run.log();
        const std::vector<i32> now = pids_of(run);
        return std::all_of(now.begin(), now.end(), [&](i32 pid) {
            return log_text.find(fmt::format(" is back as pid {} after", pid)) != std::string::npos;
        });
    });
}

/// Of the deaths at that end of the domain, those that a process died of its own.
std::vector<std::string> own_deaths(const json& report, u64 end) {
    std::vector<std::string> out;
    for (const json& r : report["recoveries"])
        if (r.value("domain_end", u64{0}) == end && !r.value("shared", false))
            out.push_back(fmt::format("{} {}", r["seat"].get<std::string>(), r["pid"].get<i32>()));
    return out;
}

std::size_t deaths_in(const json& report, u64 end) {
    const json& all = report["recoveries"];
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [&](const json& r) { return r.value("domain_end", u64{0}) == end; }));
}

}  // namespace

TEST_CASE("an external kill renews the whole MPS domain, `restart` and `kill` do not") {
    run_fixture run;
    run.start(run.pipeline("shared", shared("shared")), {"--frames", frames}, with_fake(run));
    REQUIRE(run.wait_running());
    const std::vector<i32> before = pids_of(run);
    run.hit("middle", SIGKILL);
    CHECK(all_replaced(run, before));
    const std::vector<i32> then = pids_of(run);
    std::string out;
    REQUIRE(run.command({"restart", "middle", "-p", "shared"}, out) == 0);
    CHECK(run.wait_until(
        [&] { return run.pid_of("middle") != then[1] && run.stage("middle")["state"] == "running"; }));
    const i32 restarted = run.pid_of("middle");
    REQUIRE(run.command({"kill", "middle", "-p", "shared"}, out) == 0);
    CHECK_THAT(out, contains("its MPS domain continues"));
    CHECK(run.wait_until(
        [&] { return run.pid_of("middle") != restarted && run.stage("middle")["state"] == "running"; }));
    CHECK_THAT(run.log(), contains(fmt::format("middle (pid {}) died: signal 9 (SIGKILL)", restarted)));
    CHECK(run.pid_of("numbers") == then[0]);
    CHECK(run.pid_of("sink") == then[2]);
    CHECK(run.wait() == 0);
    CHECK_THAT(text_of(run.path("asked")),
               contains("terminate_client") && contains(fmt::format(" {}\n", then[1])));
    check_whole(run, 1);
    CHECK(run.report()["restarts"] == 5);
}

TEST_CASE("a spare daemon serves after a fault, is replaced, and a second fault may follow") {
    run_fixture run;
    run.start(run.pipeline("spare", shared("spare")), {}, with_fake(run));
    REQUIRE(run.wait_running());
    for (u64 faults = 1; faults <= 2; ++faults) {
        REQUIRE(run.wait_until([&] { return domain_of(run)["spare"] == true; }));
        const std::vector<i32> before = pids_of(run);
        const json daemon = domain_of(run)["daemon_pid"];
        run.hit("middle", SIGKILL);
        CHECK(all_replaced(run, before));
        CHECK(all_deliver(run));
        CHECK(domain_of(run)["daemon_pid"] != daemon);
        CHECK(domain_of(run)["generation"] == faults + 1);
        CHECK(run.wait_until(
            [&] { return ::kill(daemon.get<i32>(), 0) != 0; }));  // none of its processes is left
    }
    const std::vector<i32> before = pids_of(run);
    run.hit("sink", SIGKILL);  // whether or not a spare one is available again
    CHECK(all_replaced(run, before));
    CHECK(all_deliver(run));
    run.signal(SIGINT);
    run.wait();
    const json r = run.report();
    INFO(run.log());
    check_undamaged(r);
    CHECK(r["mps"]["domain_faults"] == 3);
    CHECK(r["mps"]["back_ms"]["count"].get<u64>() >= 2);
    CHECK(r["takeover_parts_ms"]["to_ready"]["count"] == 9);
    CHECK(run.leftovers() == "");
}

TEST_CASE("the standbys of an MPS domain wait in the spare one and take over together") {
    run_fixture run;
    run.start(run.pipeline("joint", with_standbys("joint")), {}, with_fake(run));
    const std::vector<i32> standbys = all_standbys(run);
    REQUIRE(std::count(standbys.begin(), standbys.end(), 0) == 0);
    run.hit("middle", SIGKILL);
    CHECK(run.wait_until([&] { return pids_of(run) == standbys; }, 5));
    CHECK(domain_of(run)["generation"] == 2);
    CHECK(all_deliver(run));
    run.signal(SIGINT);
    run.wait();
    const json r = run.report();
    INFO(run.log());
    check_undamaged(r);
    CHECK(r["standby_takeovers"] == 3);
    CHECK(r["mps"]["domain_faults"] == 1);
    CHECK(own_deaths(r, 1).size() == 1);
    CHECK(run.leftovers() == "");
}

TEST_CASE("each death of an MPS domain's end is reported as such, shared ones as shared") {
    run_fixture run;
    run.start(run.pipeline("told", shared("told", "", "no_device_epoch = 2\n")), {"--frames", frames},
              with_fake(run));
    REQUIRE(run.wait_running());
    const std::vector<i32> before = pids_of(run);
    run.hit("sink", SIGKILL);
    // The second incarnation of middle finds no device in the new domain, and ends that domain, too: it
    // counts as the same end of the domain.
    REQUIRE(run.wait_until([&] { return domain_of(run)["domain_faults"] == 2; }));
    REQUIRE(all_replaced(run, before));
    REQUIRE(all_deliver(run));  // seen to be intact
    run.hit("numbers", SIGKILL);
    CHECK(run.wait() == 0);
    check_whole(run, 3);
    const json r = run.report();
    INFO(r["recoveries"].dump(2));
    CHECK(own_deaths(r, 1) == std::vector<std::string>{fmt::format("sink {}", before[2])});
    CHECK(deaths_in(r, 1) >= 4);
    CHECK(own_deaths(r, 2).size() == 1);
    CHECK(deaths_in(r, 2) == 3);
    CHECK(std::any_of(r["recoveries"].begin(), r["recoveries"].end(), [](const json& d) {
        return d.value("how", "") == "exit code 3" && d.value("shared", false);
    }));
}

TEST_CASE("a death is reported with its own cause even if a neighbour's death is detected first") {
    run_fixture run;
    // The first incarnation of middle aborts one second after it has begun frame 0.
    run.start(
        run.pipeline("beside",
                     shared("beside", "",
                            "die_at = 0\ndie_how = \"abort\"\ndie_incarnations = 1\nenqueue_ms = 1000\n")),
        {"--frames", "2"}, with_fake(run));
    REQUIRE(run.wait_until([&] {
        return run.stage("middle")["state"] == "running" && run.stage("numbers")["state"] == "running";
    }));
    const std::vector<i32> before = pids_of(run);
    const auto is_dead = [](i32 pid) {
        return text_of(fmt::format("/proc/{}/stat", pid)).find(") Z ") != std::string::npos;
    };
    run.signal(SIGSTOP);  // both are dead at its next check
    ::kill(before[0], SIGKILL);
    const bool killed = run.wait_until([&] { return is_dead(before[0]); });
    const bool died = run.wait_until([&] { return is_dead(before[1]); });
    run.signal(SIGCONT);
    REQUIRE(killed);
    REQUIRE(died);
    CHECK(run.wait() == 0);
    const json r = run.report();
    INFO(run.log());
    check_undamaged(r);
    CHECK(r["mps"]["domain_faults"] == 1);
    std::vector<std::string> own = own_deaths(r, 1);
    std::sort(own.begin(), own.end());
    CHECK(own == std::vector<std::string>{fmt::format("middle {}", before[1]),
                                          fmt::format("numbers {}", before[0])});
}

TEST_CASE("an MPS daemon that dies takes its stages along, by no doing of theirs") {
    run_fixture run;
    run.start(run.pipeline("daemon", shared("daemon")), {"--frames", frames}, with_fake(run));
    REQUIRE(run.wait_running());
    const std::vector<i32> before = pids_of(run);
    REQUIRE(::kill(domain_of(run)["daemon_pid"].get<i32>(), SIGKILL) == 0);
    CHECK(all_replaced(run, before));
    CHECK(run.wait() == 0);
    check_whole(run, 1);
    CHECK(own_deaths(run.report(), 1).empty());
    CHECK(deaths_in(run.report(), 1) == 3);
}

TEST_CASE("a client that can't be ended individually ends its domain, and no frame is lost") {
    run_fixture run;
    // Ten seconds: the stand-in replies once it has created the next domain, which takes a busy machine some
    // time.
    std::string slow = shared("refused");
    slow.replace(slow.find("fps = 250"), 9, "fps = 100");
    run.start(run.pipeline("refused", slow), {"--frames", frames}, with_fake(run, "terminate-refused"));
    REQUIRE(run.wait_running());
    const std::vector<i32> before = pids_of(run);
    std::string out;
    REQUIRE(run.command({"restart", "middle", "-p", "refused"}, out) == 0);
    CHECK(run.wait_until(
        [&] { return run.pid_of("sink") != before[2] && run.stage("sink")["state"] == "running"; }));
    CHECK(run.wait() == 0);
    check_whole(run, 1);
}

TEST_CASE("only device faults that are not injected make their stage run by itself on trial") {
    const bool asked = GENERATE(false, true);
    CAPTURE(asked);
    run_fixture run;
    // Four incarnations of middle get a device error one second after their start, before they have moved a
    // frame.
    run.start(
        run.pipeline(
            "errors",
            shared("errors", "", "die_at = 0\ndie_how = \"gpu\"\ndie_incarnations = 4\nenqueue_ms = 1000\n")),
        {"--frames", "2"}, with_fake(run));
    for (int round = 0; asked && round < 4; ++round) {
        REQUIRE(run.wait_until([&] {
            return run.stage("middle")["state"] == "running" && domain_of(run)["domain_faults"] == round;
        }));
        std::string out;
        REQUIRE(run.wait_until([&] { return run.command({"inject", "sink", "-p", "errors"}, out) == 0; }));
    }
    CHECK(run.wait() == 0);
    const json r = run.report();
    INFO(run.log());
    CHECK(r["mps"]["abandoned"] == false);
    CHECK(r["mps"]["domain_faults"] == (asked ? 4 : 2));
    CHECK(r["mps"]["blamed"] == (asked ? json::array() : json{"middle"}));
    CHECK(r["dead_letters"].empty());
    check_undamaged(r);
}

TEST_CASE("of several suspects, only the one that faults by itself is blamed and loses an attempt") {
    const int attempts = GENERATE(1, 2);  // with 1, a charge against an innocent frame would abandon it
    // Whether the neighbours have frames in progress whenever frame 40 faults, and are suspects, too.
    const char* const neighbours = GENERATE("", "work_ms = 30\nin_flight = 3\n");
    CAPTURE(attempts, neighbours);
    run_fixture run;
    const std::string middle = fmt::format(
        "die_at = 40\ndie_how = \"gpu\"\nmax_attempts = {}\nwork_ms = 30\nin_flight = 3\n", attempts);
    const std::string keys = "isolation = \"mps\"\nfps = 250\nframe_timeout_ms = 10000\n";
    run.start(run.pipeline("trial", number_pipeline("trial", keys, middle, neighbours, neighbours)),
              {"--frames", "60"}, with_fake(run));
    CHECK(run.wait() == exit_code::frames_abandoned);
    const json r = run.report();
    INFO(run.log());
    check_undamaged(r);
    CHECK(r["frames"] == 60);
    CHECK(r["mps"]["abandoned"] == false);
    CHECK(r["mps"]["blamed"] == json{"middle"});
    REQUIRE(r["dead_letters"].size() == 1);
    CHECK(r["dead_letters"][0]["ring_sequence"] == 40);
    CHECK(r["dead_letters"][0]["stage"] == "middle");
    // No other process has died of its own: its frames were leased alone, and one of them faults.
    for (const json& death : r["recoveries"])
        if (death.contains("how") && !death.value("shared", false) && death["how"] != supervisor::moved_text)
            CHECK(death["seat"] == "middle");
    CHECK_THAT(run.log(), contains("has faulted when run alone: it causes the MPS domain's faults"));
    CHECK(run.leftovers() == "");
}

TEST_CASE("a wild write renews the MPS domain, its writer is named, others keep their attempts") {
    // With one attempt a charge against an innocent frame would abandon it. A GPU reports the same error to
    // all clients.
    run_fixture run;
    const std::string once = "max_attempts = 1\n";
    run.start(run.pipeline("wild_writes", number_pipeline("wild_writes", "isolation = \"mps\"\nfps = 250\n",
                                                          "", once, once)),
              {"--frames", frames}, with_fake(run));
    const std::pair<const char*, const char*> kinds[] = {
        {"scribble-input", "a write into its input ring numbers, frame "},
        {"overrun-output", "an overrun of its slot in the ring middle, frame "},
        {"scribble-control", "a write into the control block: "}};
    std::map<i32, std::string> reported;
    for (const auto& [kind, called] : kinds) {
        REQUIRE(run.wait_running());
        const std::vector<i32> before = pids_of(run);
        std::string out;
        REQUIRE(run.command({"inject", "middle", "--fault", kind, "-p", "wild_writes"}, out) == 0);
        REQUIRE(all_replaced(run, before));
        REQUIRE(all_deliver(run));
        reported[before[1]] = called;
    }
    CHECK(run.wait() == 0);
    check_whole(run, 3);
    const json r = run.report();
    CHECK(r["mps"]["blamed"].empty());
    for (const json& death : r["recoveries"]) {
        if (!death.contains("how")) continue;
        CAPTURE(death.dump());
        const auto writer = reported.find(death["pid"].get<i32>());
        CHECK(death.value("shared", false) == (writer == reported.end()));
        if (writer != reported.end()) CHECK_THAT(death.value("wild_write", ""), contains(writer->second));
    }
    CHECK(r["restarts"] == 9);
}

TEST_CASE("suspects that run by themselves without a fault return to the MPS domain, without blame") {
    run_fixture run;
    // The first two incarnations of middle fault before a frame has moved, its later ones don't.
    run.start(run.pipeline("acquitted", shared("acquitted", "frame_timeout_ms = 10000\n",
                                               "die_at = 0\ndie_how = \"gpu\"\ndie_incarnations = 2\n")),
              {"--frames", frames}, with_fake(run));
    REQUIRE(run.wait_until(
        [&] { return run.log().find("all stages return to the shared MPS domain") != std::string::npos; }));
    CHECK(run.wait() == 0);
    check_whole(run, 2);
    const json r = run.report();
    CHECK(r["mps"]["blamed"].empty());
    CHECK_THAT(run.log(), contains("has run alone without a fault: it returns to the MPS domain"));
}

TEST_CASE("a supervisor that is killed leaves its MPS daemon to the one that adopts the run") {
    run_fixture run;
    const std::string file = run.pipeline("adopted", shared("adopted", "supervisor_grace_s = 20\n"));
    run.start(file, {"--frames", frames}, with_fake(run));
    REQUIRE(run.wait_running());
    const i32 daemon = run.ask({{"type", "ps"}})["pipeline"]["mps"]["daemon_pid"];
    const std::vector<i32> before = pids_of(run);
    run.signal(SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    run.start(file, {"--frames", frames}, with_fake(run));
    REQUIRE(run.wait_running());
    CHECK(run.ask({{"type", "ps"}})["pipeline"]["mps"]["daemon_pid"] == daemon);
    CHECK(pids_of(run) == before);
    CHECK(run.wait() == 0);
    check_whole(run, 0);
}

TEST_CASE("without another supervisor the last stage that leaves ends the MPS daemon") {
    run_fixture run;
    run.start(run.pipeline("orphaned", shared("orphaned", "supervisor_grace_s = 0.3\n")),
              {"--frames", "100000"}, with_fake(run));
    REQUIRE(run.wait_running());
    run.signal(SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    CHECK(run.wait_until([&] { return run.leftovers().empty(); }));
    CHECK(run.leftovers() == "");
}

TEST_CASE("an MPS daemon that does not start ends the run with a clear error and no leftovers") {
    run_fixture run;
    run.start(run.pipeline("none", shared("none")), {"--frames", "10"}, with_fake(run, "refuse"));
    CHECK(run.wait() == 3);
    CHECK_THAT(run.log(), contains("starting a private MPS daemon") && contains("says the fake") &&
                              contains("isolation = \"process\""));
    CHECK(run.leftovers() == "");
}

TEST_CASE("isolation by MPS on the CPU has no effect and reports that") {
    run_fixture run;
    run.start(run.pipeline("idle", shared("idle")), {"--frames", "10"});
    CHECK(run.wait() == 0);
    CHECK_THAT(
        run.log(),
        contains("isolation = \"mps\" has no effect on stages that run on the CPU: numbers, middle, sink"));
}
