// A pipeline on several hosts, as the window shows it: what a supervisor reports about the others, their
// rows, and the request of a click on one of their buttons.
#include <csignal>

#include "control/ps_message.hpp"
#include "tests/support/catch.hpp"
#include "tests/viewer/canvas.hpp"
#include "tests/viewer/models.hpp"
#include "viewer/watch/control.hpp"

using namespace carousel;
using test::canvas;
using test::watched;

namespace {

run::ps_stage row(const char* name, u32 instance, i32 pid) {
    run::ps_stage s;
    s.name = name;
    s.instance = instance;
    s.pid = pid;
    s.state = "running";
    s.restarts = 0;
    s.frames_per_second = 60;
    s.busy = 0.5;
    s.cpu_percent = 12;
    s.memory_bytes = 1 << 20;
    return s;
}

run::ps_answer two_hosts() {
    run::ps_answer a;
    a.hosts.push_back({"b", "10.0.0.2", "running", 12.5, 0.25});
    a.hosts.push_back({"bb", "10.0.0.3", "running", {}, {}});
    a.stages = {row("geometry", 0, 11), row("b/blur", 0, 21), row("b/blur", 1, 22), row("bb/sink", 0, 31)};
    return run::read_ps(run::to_json(a));
}

}  // namespace

TEST_CASE("each host of a ps answer has its own stages") {
    const std::vector<viewer::host_report> hosts = viewer::host_reports(two_hosts());
    REQUIRE(hosts.size() == 2);
    CHECK(hosts[0].text ==
          "host b (10.0.0.2): running, its clock is 12.500 ms ahead of this host's clock (within 0.250 ms)");
    CHECK(hosts[1].text == "host bb (10.0.0.3): running");
    REQUIRE(hosts[0].seats.size() == 2);
    CHECK(hosts[0].seats[1].label == "b/blur.1");
    CHECK(hosts[0].seats[1].pid == 22);
    REQUIRE(hosts[1].seats.size() == 1);  // "b/" is not part of "bb/"
    CHECK(hosts[1].seats[0].label == "bb/sink");
    CHECK(hosts[1].seats[0].shares()->busy == 0.5);
    CHECK_FALSE(hosts[1].seats[0].is_paused());
    const std::vector<viewer::seat_report> here = viewer::seat_reports(two_hosts());
    REQUIRE(here.size() == 1);
    CHECK(here[0].label == "geometry");
    CHECK(here[0].pid == 11);
}

TEST_CASE("a lost or returned host and a stage replaced there are reported once") {
    run::ps_answer a = two_hosts();
    const std::vector<viewer::host_report> before = viewer::host_reports(a);
    CHECK(viewer::changes({}, before, 1).empty());
    CHECK(viewer::changes(before, before, 1).empty());
    a.hosts[0].state = "lost";
    a.stages[3].restarts = 1;
    a.stages[3].pid = 32;
    a.stages[3].last_exit = "signal 9 (SIGKILL)";
    const std::vector<viewer::host_report> after = viewer::host_reports(a);
    std::vector<telemetry::run_event> events = viewer::changes(before, after, 7);
    REQUIRE(events.size() == 2);
    CHECK(events[0].text == "host b: lost, was running");
    CHECK(events[0].kind == telemetry::event_kind::bad);
    CHECK(events[1].text == "bb/sink (pid 31 there) was replaced: signal 9 (SIGKILL)");
    CHECK(events[1].time_ns == 7);
    events = viewer::changes(after, viewer::host_reports(two_hosts()), 8);
    REQUIRE(events.size() == 1);  // fewer restarts: the host has restarted
    CHECK(events[0].kind == telemetry::event_kind::good);
}

TEST_CASE("the stages of other hosts have rows and buttons of their own") {
    watched w(test::demo_plan(1280, 720));
    w.r.sit_all();
    w.run(60);
    canvas s(false);
    s.draw(w.m);
    CHECK(canvas::find("stages.host.b") == nullptr);
    w.m.hosts = viewer::host_reports(two_hosts());
    s.draw(w.m);
    const viewer::ui::widget* in = canvas::find("panel.stages");
    REQUIRE(in != nullptr);
    for (const char* name : {"stages.host.b", "stages.host.bb", "stages.row.b/blur.0",
                             "stages.state.b/blur.1", "stages.kill.bb/sink"}) {
        INFO(name);
        const viewer::ui::widget* at = canvas::find(name);
        REQUIRE(at != nullptr);
        CHECK((at->x >= in->x && at->x + at->width <= in->x + in->width));
        CHECK((at->y >= in->y && at->y + at->height <= in->y + in->height));
    }
    CHECK(canvas::sane());
    REQUIRE(s.click(w.m, "stages.kill.b/blur.1"));
    REQUIRE(w.m.commands.size() == 1);
    CHECK(viewer::describe(w.m.commands[0]) == "kill b/blur.1");
    CHECK(std::get<run::kill_request>(w.m.commands[0].what).signal == SIGKILL);
    w.m.commands.clear();
    w.m.hosts[0].state = "lost";  // no supervisor runs to be queried
    s.draw(w.m);
    REQUIRE(s.click(w.m, "stages.kill.b/blur.1"));
    CHECK(w.m.commands.empty());
}
