// A read-only viewer: its client sends nothing that changes the run, and its controls are disabled.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "tests/support/catch.hpp"
#include "tests/viewer/canvas.hpp"
#include "tests/viewer/models.hpp"
#include "tests/viewer/watcher.hpp"

using namespace carousel;
using namespace carousel::viewer;
using test::canvas;
using test::fake_run;
using test::place_of_runs;
using test::watched;
using test::watcher;

namespace {

const session_options watching_only{.name = "", .allowed = client_access::read_only};

}  // namespace

TEST_CASE("a read-only client sends none of the commands, and answers each with the reason") {
    const place_of_runs place;
    fake_run run;
    watcher w(watching_only);
    REQUIRE(w.until([&] { return w.m.picture.ring_sequence > 3 && !w.m.report.empty(); }));
    CHECK(w.m.read_only);
    const std::vector<run::request> commands{run::kill_request{"fragment"},
                                             run::seat_request{run::seat_order::stop, "vertex"},
                                             run::inject_request{"fragment", shm::injected_fault::hang},
                                             run::set_request{.reset = true},
                                             run::end_request{},
                                             run::rebuild_request{},
                                             run::reload_request{},
                                             run::continue_request{},
                                             run::device_request{},
                                             run::trace_request{},  // makes the stages write timestamps
                                             run::trace_file_request{}};
    for (const run::request& r : commands) {
        CHECK_FALSE(only_reads(r));
        w.m.ask(r);
    }
    w.m.reset_values = true;  // as the panel of the parameters would
    const std::size_t before = w.m.events.events().size();
    REQUIRE(w.until([&] { return w.m.events.events().size() >= before + commands.size(); }));
    const u64 frames = w.m.picture.ring_sequence;
    CHECK(w.until([&] { return w.m.picture.ring_sequence > frames + 20; }));
    CHECK(run.commands().empty());
    CHECK(run.sets().empty());
    const auto& events = w.m.events.events();
    CHECK(std::any_of(events.begin(), events.end(), [](const telemetry::run_event& e) {
        return e.text == std::string("kill fragment: ") + read_only_text;
    }));
    w.s.end_run(w.m);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CHECK(run.commands().empty());
    CHECK(run.epoch_of(2) == 1);
    // The control: the same commands of another viewer arrive.
    watcher other;
    REQUIRE(other.until([&] { return other.m.phase == run_phase::watching; }));
    other.m.ask(run::kill_request{"fragment"});
    CHECK(other.until([&] { return !run.commands().empty(); }));
}

TEST_CASE("no key and no click of a read-only window requests a command") {
    watched w(test::demo_plan(64, 64));
    w.r.sit_all();
    w.run(30);
    w.m.read_only = true;
    canvas s(false, 1920, 1080);
    s.draw(w.m, 3);
    CHECK(canvas::find("stages.read_only") != nullptr);
    CHECK(canvas::find("head.text.read-only") != nullptr);
    for (int key = 32; key < 280; ++key)
        for (const bool ctrl : {false, true})
            for (const bool shift : {false, true}) s.screen.on_key(w.m, {key, ctrl, shift});
    w.m.help = w.m.choosing = false;
    w.m.slot_picture.wanted.reset();
    s.draw(w.m, 3);
    for (const char* name : {"stages.kill.vertex", "stages.stop.vertex", "stages.restart.vertex", "scene.yaw",
                             "scene.wireframe", "scene.reset", "image.area"})
        REQUIRE(s.click(w.m, name));
    CHECK(w.m.commands.empty());
    CHECK_FALSE(w.m.values_changed);
    CHECK_FALSE(w.m.reset_values);
    // The control: the same clicks in another window request commands.
    w.m.read_only = false;
    s.draw(w.m, 3);
    REQUIRE(s.click(w.m, "stages.kill.vertex"));
    CHECK(w.m.commands.size() == 1);
    REQUIRE(s.click(w.m, "scene.reset"));
    CHECK(w.m.reset_values);
}

TEST_CASE("a read-only viewer sends no signal to the supervisor when its window is closed") {
    const place_of_runs place;
    const pid_t other = ::fork();
    if (other == 0) {
        ::pause();
        ::_exit(0);
    }
    {
        watcher w(session_options{.name = "", .supervisor = other, .allowed = client_access::read_only});
        w.step();
        w.s.end_run(w.m);
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        CHECK(::kill(other, 0) == 0);
        int status = 0;
        CHECK(::waitpid(other, &status, WNOHANG) == 0);
    }
    ::kill(other, SIGKILL);
    ::waitpid(other, nullptr, 0);
}
