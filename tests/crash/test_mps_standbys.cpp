// Standbys of an MPS domain's stages wait in the spare domain and take over together. As in
// test_mps_domain.cpp, the domains are fake.
#include <csignal>

#include "supervisor/mps/mps_control.hpp"
#include "tests/crash/crash_plan.hpp"
#include "tests/crash/mps_run.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

void end_whole(run_fixture& run) {
    run.signal(SIGINT);
    run.wait();
    INFO(run.log());
    check_undamaged(run.report());
    CHECK(run.report()["dead_letters"].empty());
    CHECK(run.leftovers() == "");
}

/// A run whose supervisor dies in the joint takeover that follows the death of `middle`.
struct interrupted_takeover : run_fixture {
    crash_plan plan{path("plan")};
    std::vector<std::string> environment = with_fake(*this);
    std::string file;
    std::vector<i32> standbys, holders;

    interrupted_takeover(const std::string& name, crash_point point, u64 nth) {
        plan.add("supervisor", point, "kill", nth);
        plan.write();
        environment.push_back(plan.environment());
        file = pipeline(name, with_standbys(name));
        start(file, {}, environment);
        standbys = all_standbys(*this);
        holders = pids_of(*this);
        REQUIRE(std::count(standbys.begin(), standbys.end(), 0) == 0);
    }
    void die() {
        hit("middle", SIGKILL);
        REQUIRE(wait() == -SIGKILL);
        CHECK(plan.pending_lines() == "");
    }
};

/// The server is the first child of the fake daemon.
i32 server_of(i32 daemon) {
    return std::atoi(read_file(fmt::format("/proc/{0}/task/{0}/children", daemon)).value_or("").c_str());
}

}  // namespace

TEST_CASE("standbys in the spare MPS domain take over together, whatever ends the serving one") {
    run_fixture run;
    run.start(run.pipeline("joint", with_standbys("joint")), {}, with_fake(run));
    std::vector<i32> standbys = all_standbys(run);
    u64 generation = 1;
    std::string out;
    i32 killed = 0;
    const auto take_over = [&](auto&& end) {
        REQUIRE(std::count(standbys.begin(), standbys.end(), 0) == 0);
        end();
        CHECK(run.wait_until([&] { return pids_of(run) == standbys; }, 5));
        CHECK(domain_of(run)["generation"] == ++generation);
        standbys = all_standbys(run, standbys);
    };
    take_over([&] { run.hit("middle", SIGKILL); });
    take_over([&] {
        killed = run.pid_of("sink");
        REQUIRE(run.command({"kill", "sink", "-p", "joint"}, out) == 0);
        CHECK_THAT(out, contains("the standbys of all stages of its MPS domain take over"));
    });
    take_over([&] { REQUIRE(::kill(domain_of(run)["daemon_pid"].get<i32>(), SIGKILL) == 0); });
    take_over([&] {
        const i32 server = server_of(domain_of(run)["daemon_pid"]);
        REQUIRE((server > 0 && ::kill(server, SIGKILL) == 0));
    });
    take_over([&] {
        for (const i32 pid : pids_of(run)) ::kill(pid, SIGKILL);
    });
    end_whole(run);
    CHECK_THAT(read_file(run.path("asked")).value_or(""),
               contains("terminate_client") && contains(fmt::format(" {}\n", killed)));
    const json r = run.report();
    CHECK(r["standby_takeovers"] == 15);
    CHECK(r["restarts"] == 15);
    CHECK(r["mps"]["domain_faults"] == 5);
}

TEST_CASE("the death of the spare MPS domain costs its standbys and no process that works") {
    run_fixture run;
    run.start(run.pipeline("spares", with_standbys("spares")), {}, with_fake(run));
    const std::vector<i32> standbys = all_standbys(run), holders = pids_of(run);
    REQUIRE(domain_of(run)["spare"] == true);
    const bool server = GENERATE(false, true);
    CAPTURE(server);
    const i32 daemon = supervisor::mps_control(run.path("runtime/carousel/spares/mps"), "1").daemon().pid;
    REQUIRE(daemon > 0);
    REQUIRE(::kill(server ? server_of(daemon) : daemon, SIGKILL) == 0);
    const std::vector<i32> next = all_standbys(run, standbys);
    CHECK(std::count(next.begin(), next.end(), 0) == 0);
    CHECK(pids_of(run) == holders);
    run.hit("numbers", SIGKILL);
    CHECK(run.wait_until([&] { return pids_of(run) == next; }, 5));
    CHECK(domain_of(run)["generation"] == 4);  // 2 was that of the spare that died
    end_whole(run);
    CHECK(run.report()["mps"]["domain_faults"] == 1);
}

TEST_CASE("standbys of only some stages of an MPS domain replace processes that end alone") {
    run_fixture run;
    run.start(run.pipeline("some", with_standbys("some", "", "")), {}, with_fake(run));
    REQUIRE(run.wait_until([&] { return standbys_of(run)[0] != 0 && standbys_of(run)[2] != 0; }));
    const std::vector<i32> standbys = standbys_of(run), before = pids_of(run);
    std::string out;
    REQUIRE(run.command({"kill", "sink", "-p", "some"}, out) == 0);
    CHECK_THAT(out, contains("its MPS domain continues"));
    CHECK(run.wait_until([&] { return run.pid_of("sink") == standbys[2]; }, 5));
    CHECK(run.pid_of("middle") == before[1]);
    CHECK(standbys_of(run)[0] == standbys[0]);
    REQUIRE(run.wait_until([&] { return standbys_of(run)[2] != 0; }));
    // An outside kill ends the domain, with the standbys that wait there.
    const std::vector<i32> then = pids_of(run), waiting = standbys_of(run);
    run.hit("middle", SIGKILL);
    CHECK(run.wait_until([&] {
        const std::vector<i32> now = pids_of(run);
        return now[0] != then[0] && now[1] != then[1] && now[2] != then[2] &&
               run.stage("middle")["state"] == "running";
    }));
    CHECK(run.pid_of("numbers") != waiting[0]);
    CHECK(run.pid_of("sink") != waiting[2]);
    end_whole(run);
    CHECK(run.report()["mps"]["domain_faults"] == 1);
}

TEST_CASE("if the daemons of both MPS domains die, fresh processes continue in a third one") {
    run_fixture run;
    run.start(run.pipeline("both", with_standbys("both")), {}, with_fake(run));
    const std::vector<i32> standbys = all_standbys(run), before = pids_of(run);
    REQUIRE(std::count(standbys.begin(), standbys.end(), 0) == 0);
    const i32 serving = domain_of(run)["daemon_pid"];
    const i32 spare = supervisor::mps_control(run.path("runtime/carousel/both/mps"), "1").daemon().pid;
    REQUIRE(spare > 0);
    run.signal(SIGSTOP);  // both are dead when the supervisor checks again
    REQUIRE((::kill(spare, SIGKILL) == 0 && ::kill(serving, SIGKILL) == 0));
    run.signal(SIGCONT);
    CHECK(run.wait_until([&] {
        const std::vector<i32> now = pids_of(run);
        return now[0] != before[0] && now[1] != before[1] && now[2] != before[2] &&
               domain_of(run)["up"] == true;
    }));
    const std::vector<i32> next = all_standbys(run, standbys);
    CHECK(std::count(next.begin(), next.end(), 0) == 0);
    end_whole(run);
}

TEST_CASE("a supervisor that dies in a joint takeover has a successor that completes it") {
    const auto [point, nth] = GENERATE(table<crash_point, u64>({{crash_point::seat_named, 1},
                                                                {crash_point::entry_doomed, 2},
                                                                {crash_point::words_revoked, 3},
                                                                {crash_point::entry_fenced, 1}}));
    CAPTURE(static_cast<int>(point), nth);
    interrupted_takeover run("completed", point, nth);
    run.die();
    run.start(run.file, {}, run.environment);
    CHECK(run.wait_until([&] { return pids_of(run) == run.standbys; }));
    CHECK(run.wait_until([&] { return domain_of(run)["generation"] == 2; }));
    const std::vector<i32> next = all_standbys(run, run.standbys);
    run.hit("sink", SIGKILL);
    CHECK(run.wait_until([&] { return pids_of(run) == next; }));
    end_whole(run);
    CHECK(run.report()["taken_over"] == 1);
}

TEST_CASE("if the spare MPS domain dies with a supervisor in a joint takeover, no frame is lost") {
    const auto [point, nth] =
        GENERATE(table<crash_point, u64>({{crash_point::seat_named, 1}, {crash_point::entry_doomed, 1}}));
    CAPTURE(static_cast<int>(point), nth);
    interrupted_takeover run("doubled", point, nth);
    const i32 spare = supervisor::mps_control(run.path("runtime/carousel/doubled/mps"), "1").daemon().pid;
    REQUIRE(spare > 0);
    run.die();
    REQUIRE(::kill(spare, SIGKILL) == 0);  // its server lives
    run.start(run.file, {}, run.environment);
    const std::vector<i32> next = all_standbys(run, run.standbys);
    CHECK(std::count(next.begin(), next.end(), 0) == 0);
    const std::vector<i32> now = pids_of(run);
    for (std::size_t k = 0; k < now.size(); ++k)
        CHECK((now[k] != run.standbys[k] && now[k] != run.holders[k]));
    CHECK(domain_of(run)["generation"] == 3);
    end_whole(run);
    CHECK(run.report()["taken_over"] == 1);
}

TEST_CASE("a supervisor adopts the standbys of the spare MPS domain, which take over from all dead stages") {
    run_fixture run;
    const std::string file = run.pipeline("adopters", with_standbys("adopters"));
    run.start(file, {}, with_fake(run));
    const std::vector<i32> standbys = all_standbys(run), holders = pids_of(run);
    run.signal(SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    const bool dead = GENERATE(false, true);
    CAPTURE(dead);
    for (const i32 pid : holders)
        if (dead) REQUIRE(::kill(pid, SIGKILL) == 0);
    run.start(file, {}, with_fake(run));
    REQUIRE(run.wait_running());
    CHECK(run.wait_until([&] { return pids_of(run) == (dead ? standbys : holders); }));
    if (!dead) {
        CHECK(standbys_of(run) == standbys);
        CHECK(domain_of(run)["spare"] == true);
        run.hit("middle", SIGKILL);
        CHECK(run.wait_until([&] { return pids_of(run) == standbys; }));
    }
    end_whole(run);
    CHECK(run.report()["standby_takeovers"] == 3);
}
