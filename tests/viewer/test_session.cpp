// The viewer's tie to a run, with a pretended supervisor: finding it, pictures, deaths, commands, ends.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "tests/support/catch.hpp"
#include "tests/viewer/watcher.hpp"

using namespace carousel;
using namespace carousel::viewer;
using test::fake_options;
using test::fake_run;
using test::place_of_runs;
using test::watcher;

namespace {

/// For a record's supervisor.
struct process_that_waits {
    pid_t pid = ::fork();
    bool gone = false;
    process_that_waits() {
        if (pid != 0) return;
        ::pause();
        ::_exit(0);
    }
    void kill() {
        if (gone) return;
        gone = true;
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
    }
    ~process_that_waits() { kill(); }
    process_that_waits(const process_that_waits&) = delete;
    process_that_waits& operator=(const process_that_waits&) = delete;
};

}  // namespace

TEST_CASE("with no run the session waits, and finds one that starts later") {
    const place_of_runs place;
    watcher w;
    w.step();
    CHECK(w.m.phase == run_phase::waiting);
    fake_run run;
    CHECK(w.until([&] { return w.m.phase == run_phase::watching; }));
    CHECK(w.m.snap.pipeline == "demo");
}

TEST_CASE("the newest frame arrives whole, and every pixel is the frame's own") {
    const place_of_runs place;
    fake_run run;
    watcher w;
    u64 last = 0;
    int seen = 0;
    REQUIRE(w.until([&] {
        if (w.m.picture.pixels == nullptr || w.m.picture.ring_sequence == last) return false;
        last = w.m.picture.ring_sequence;
        const auto* p = reinterpret_cast<const u32*>(w.m.picture.pixels);
        for (u32 y = 0; y < 180; y += 7)
            for (u32 x = 0; x < 320; ++x)
                if (p[y * 320 + x] != fake_run::color_of(last, x, y, 320, 180))
                    FAIL("frame " << last << " is torn at " << x << ", " << y);
        return ++seen == 20;
    }));
    CHECK(w.m.picture.torn == 0);
    CHECK(w.m.picture.path == "plain upload (host memory)");
    REQUIRE(w.m.snap.links[2].groups.size() == 2);
    CHECK(w.m.snap.links[2].groups[1].state == ring::group_state::latest);
}

TEST_CASE("a pause keeps the frame, a step takes one, and the pipeline doesn't notice") {
    const place_of_runs place;
    fake_run run;
    watcher w;
    REQUIRE(w.until([&] { return w.m.picture.ring_sequence > 3; }));
    w.m.picture.paused = true;
    w.step();
    const u64 held = w.m.picture.ring_sequence, before = run.frames();
    REQUIRE(w.until([&] { return run.frames() > before + 20; }));
    CHECK(w.m.picture.ring_sequence == held);
    w.m.picture.step = true;
    REQUIRE(w.until([&] { return w.m.picture.ring_sequence > held + 10; }));
    const u64 stepped = w.m.picture.ring_sequence;
    REQUIRE(w.until([&] { return run.frames() > before + 60; }));
    CHECK(w.m.picture.ring_sequence == stepped);
}

TEST_CASE("a killed stage: the last frame stays, the cause is reported, frames continue") {
    const place_of_runs place;
    fake_run run;
    watcher w;
    REQUIRE(w.until([&] { return w.m.picture.ring_sequence > 3; }));
    w.m.ask(run::kill_request{"fragment"});
    REQUIRE(w.until([&] { return w.m.events.last_crash().has_value(); }));
    CHECK(w.m.events.last_crash()->label == "fragment");
    CHECK(w.m.picture.pixels != nullptr);
    REQUIRE(w.until([&] {
        return w.m.events.last_crash()->back_ns != 0 && w.m.events.last_crash()->how == "signal 9 (SIGKILL)";
    }));
    const u64 before = w.m.picture.ring_sequence;
    CHECK(w.until([&] { return w.m.picture.ring_sequence > before + 10; }));
    CHECK(run.epoch_of(2) == 2);
    CHECK(run.commands() == std::vector<std::string>{"kill fragment"});
}

TEST_CASE("an ended run is reported with its result, and the next of its name is watched if chosen") {
    const place_of_runs place;
    auto run = std::make_unique<fake_run>();
    watcher w;
    REQUIRE(w.until([&] { return w.m.picture.ring_sequence > 3; }));
    run->end_with(0);
    REQUIRE(w.until([&] { return w.m.phase == run_phase::ended; }));
    CHECK(w.m.notice == "demo has ended: exit code 0");
    const std::string first = run->run_id();
    run.reset();
    fake_run next;
    REQUIRE(w.until([&] { return w.m.choices.size() == 1; }));
    for (int k = 0; k < 3; ++k) {
        std::this_thread::sleep_for(std::chrono::milliseconds(260));
        w.step();
    }
    CHECK(w.m.phase == run_phase::ended);
    CHECK(w.m.run.run_id == first);
    CHECK(w.m.snap.stages.size() == 4);  // what was seen last
    w.m.chosen = w.m.choices[0].name;
    CHECK(w.until([&] {
        return w.m.phase == run_phase::watching && w.m.run.run_id == next.run_id() &&
               w.m.picture.ring_sequence > 3;
    }));
}

TEST_CASE("a new run in the folder of the one that is watched is another run") {
    const place_of_runs place;
    auto run = std::make_unique<fake_run>();
    watcher w;
    REQUIRE(w.until([&] { return w.m.picture.ring_sequence > 3; }));
    const std::string first = run->run_id();
    run.reset();  // its record is removed; this process is the simulated supervisor and continues
    fake_run next;
    REQUIRE(w.until([&] { return w.m.phase == run_phase::ended; }));
    CHECK(w.m.run.run_id == first);
    CHECK(w.m.notice == "demo has ended: a new run has replaced it");
    w.m.ask(run::kill_request{"fragment"});
    w.step();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    w.step();
    CHECK(next.commands().empty());
}

TEST_CASE("a run that lost its supervisor stays watched, and with its next supervisor") {
    const place_of_runs place;
    process_that_waits first, second;
    fake_options o;
    o.supervisor = first.pid;
    fake_run run(o);
    watcher w;
    REQUIRE(w.until([&] { return w.m.picture.ring_sequence > 3; }));
    o.name = "external";
    o.supervisor = 0;
    fake_run other_run(o);
    first.kill();
    REQUIRE(w.until([&] { return w.m.notice == "no supervisor, 4 stages continue"; }));
    const u64 before = w.m.picture.ring_sequence;
    CHECK(w.until([&] { return w.m.picture.ring_sequence > before + 10; }));
    CHECK(w.m.phase == run_phase::watching);
    CHECK(w.m.run.run_id == run.run_id());
    run.adopt(second.pid);
    REQUIRE(w.until([&] { return w.m.notice.empty(); }));
    CHECK(w.m.run.supervisor.pid == second.pid);
    w.m.ask(run::kill_request{"fragment"});
    CHECK(w.until([&] { return run.commands() == std::vector<std::string>{"kill fragment"}; }));
    CHECK(other_run.commands().empty());
    watcher late;  // a second window: two runs are a question, also while one of them has no supervisor
    second.kill();
    late.step();
    CHECK(late.m.phase == run_phase::waiting);
    CHECK(late.m.choices.size() == 2);
}

TEST_CASE("a run with a rebuilt control block is followed into it") {
    const place_of_runs place;
    fake_run run;
    watcher w;
    REQUIRE(w.until([&] { return w.m.picture.ring_sequence > 30; }));
    run.rebuild();
    REQUIRE(w.until([&] { return w.m.snap.created_ns == run.block().created_ns; }));
    CHECK(w.m.phase == run_phase::watching);
    const u64 frames = w.m.picture.shown_frames;
    CHECK(w.until([&] { return w.m.picture.shown_frames > frames + 10; }));
    const auto& events = w.m.events.events();
    CHECK(std::any_of(events.begin(), events.end(), [](const telemetry::run_event& e) {
        return e.text == "demo restarts with new memory";
    }));
}

TEST_CASE("a command is sent only to the run for which it was given") {
    const place_of_runs place;
    fake_options o;
    o.name = "other";
    fake_run run, other(o);
    CHECK_FALSE(control_client::ask(place.path + "/carousel/other/control.sock", run.run_id(),
                                    {run::kill_request{"fragment"}})
                    .ok);
    CHECK(other.commands().empty());
    control_client c;
    c.aim(place.path + "/carousel/demo/control.sock", run.run_id());
    c.send({run::kill_request{"fragment"}});
    c.aim(place.path + "/carousel/other/control.sock", other.run_id());
    c.flush(5);
    CHECK(other.commands().empty());
    CHECK(run.commands() == std::vector<std::string>{"kill fragment"});
}

TEST_CASE("several runs are a question, and a choice or a name answers it") {
    const place_of_runs place;
    fake_options o;
    o.name = "other";
    fake_run one, two(o);
    watcher w;
    w.step();
    CHECK(w.m.phase == run_phase::waiting);
    CHECK(w.m.choices.size() == 2);
    w.m.chosen = "other";
    CHECK(w.until([&] { return w.m.phase == run_phase::watching; }));
    CHECK(w.m.snap.pipeline == "other");
    watcher named("demo");
    CHECK(named.until([&] { return named.m.phase == run_phase::watching; }));
    CHECK(named.m.snap.pipeline == "demo");
}

TEST_CASE("eight viewers fit, the ninth is refused with the reason, and a freed place is reused") {
    const place_of_runs place;
    fake_run run;
    std::vector<std::unique_ptr<watcher>> all;
    for (u32 k = 0; k < shm::max_latest; ++k) {
        all.push_back(std::make_unique<watcher>());
        REQUIRE(all.back()->until([&] { return all.back()->m.picture.pixels != nullptr; }));
    }
    watcher late;
    REQUIRE(late.until([&] { return !late.m.picture.problem.empty(); }));
    CHECK_THAT(late.m.picture.problem, test::contains("are taken"));
    all.pop_back();
    CHECK(late.until([&] { return late.m.picture.pixels != nullptr; }));
}

TEST_CASE("a missing control block is an error, and one removed while watched stays watched") {
    const place_of_runs place;
    fake_run run;
    watcher w;
    REQUIRE(w.until([&] { return w.m.picture.ring_sequence > 3; }));
    shm::segment::remove(run.run_id());  // only the name: processes that have mapped it keep it
    const u64 before = w.m.picture.ring_sequence;
    CHECK(w.until([&] { return w.m.picture.ring_sequence > before + 10; }));
    watcher late;
    REQUIRE(late.until([&] { return !late.m.notice.empty(); }));
    CHECK_THAT(late.m.notice, test::contains(run.run_id()));
    CHECK(late.m.phase == run_phase::waiting);
}

TEST_CASE("a viewer bound to a run takes no other and notices the end of its process") {
    const place_of_runs place;
    fake_run run;
    const pid_t other = ::fork();
    if (other == 0) {
        ::pause();
        ::_exit(0);
    }
    session_options o;
    o.supervisor = other;
    watcher w(o);
    for (int k = 0; k < 3; ++k) {
        w.step();
        std::this_thread::sleep_for(std::chrono::milliseconds(260));
    }
    CHECK(w.m.phase == run_phase::waiting);
    CHECK_FALSE(w.s.is_over());
    ::kill(other, SIGKILL);
    ::waitpid(other, nullptr, 0);
    CHECK(w.s.is_over());
    session_options mine;
    mine.supervisor = ::getpid();  // this process pretends to be the supervisor
    watcher right(mine);
    CHECK(right.until([&] { return right.m.phase == run_phase::watching; }));
    CHECK_FALSE(right.s.is_over());
}

TEST_CASE("a forced way of the picture is taken or refused with the reason") {
    const place_of_runs place;
    fake_run run;
    session_options o;
    o.way = picture_way::interop;
    watcher w(o);
    REQUIRE(w.until([&] { return !w.m.picture.problem.empty(); }));
    CHECK_THAT(w.m.picture.problem,
               test::contains("no CUDA-GL interop (--path interop): the ring is in host memory"));
    o.way = picture_way::copy;
    watcher copy(o);
    CHECK(copy.until([&] { return copy.m.picture.ring_sequence > 3; }));
}

TEST_CASE("no supervisor at the socket: the picture names the cause, the rest is shown") {
    const place_of_runs place;
    fake_run run;
    ::unlink((place.path + "/carousel/demo/control.sock").c_str());
    watcher w;
    REQUIRE(w.until([&] { return !w.m.picture.problem.empty(); }));
    CHECK_THAT(w.m.picture.problem, test::contains("no supervisor at"));
    CHECK(w.m.snap.stages.size() == 4);
}
