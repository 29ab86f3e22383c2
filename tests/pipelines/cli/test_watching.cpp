// The parts of logs, graph and top that need no running pipeline; and how the user calls us.

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "core/json.hpp"
#include "graph/drawing.hpp"
#include "os/console.hpp"
#include "os/log_pipe.hpp"
#include "os/table.hpp"
#include "runs/log_reader.hpp"
#include "tests/pipelines/spec/world.hpp"
#include "top/top.hpp"

using namespace carousel;
using namespace carousel::test;
using namespace carousel::supervisor;
using nlohmann::json;

namespace {

std::vector<std::string> lines_of(const std::vector<log_record>& records) {
    std::vector<std::string> out;
    for (const log_record& r : records) out.push_back(r.stage + ":" + r.line);
    return out;
}

json ps_of(const std::string& name) {
    return {{"pipeline", {{"name", name}}},
            {"stages",
             {{{"name", "a"},
               {"instance", 0},
               {"state", "running"},
               {"device", "cpu"},
               {"frames_per_second", 10.0}},
              {{"name", "a"},
               {"instance", 1},
               {"state", "failed"},
               {"device", "cpu"},
               {"frames_per_second", 10.0}},
              {{"name", "b"},
               {"instance", 0},
               {"state", "running"},
               {"device", "cuda:0"},
               {"frames_per_second", 0.0}}}},
            {"links",
             {{{"stage", "a"},
               {"format", "my \"type\" <x>\\"},
               {"slots", 15},
               {"window", 9},
               {"slot_bytes", 1024},
               {"memory", "memfd"},
               {"guard", "gap"},
               {"output", ""},
               {"readers", {{{"stage", "b"}, {"group", "latest"}}}}}}}};
}

}  // namespace

TEST_CASE("the log files of a run are read further through rotations and after their removal") {
    const world w;
    const std::string folder = w.path("logs");
    std::filesystem::create_directories(folder);
    console silent(-1, false, false);
    log_sink a(silent, "a", 1, 0, folder + "/a.jsonl"), b(silent, "b.1", 3, 1, folder + "/b.1.jsonl");
    log_reader reader(folder);
    CHECK(reader.take().empty());
    a.note(1, "one");
    b.note(2, "two");
    a.note(1, "three");
    CHECK(lines_of(reader.take()) == std::vector<std::string>{"a:one", "b.1:two", "a:three"});
    CHECK(reader.take().empty());
    // 4 MiB per file: this rotates once between two polls, in the middle of a read.
    const std::string text(8000, 'x');
    for (int k = 0; k < 700; ++k) a.note(1, fmt::format("{} {}", k, text));
    const std::vector<log_record> many = reader.take();
    REQUIRE(many.size() == 700);
    CHECK(many.front().line.starts_with("0 x"));
    CHECK(many.back().line.starts_with("699 x"));
    CHECK(std::filesystem::exists(folder + "/a.jsonl.1"));
    CHECK(log_reader(folder).take().size() == 703);           // a client that starts later reads the older
                                                              // file, too
    std::filesystem::resize_file(folder + "/b.1.jsonl", 10);  // damaged: passed over
    CHECK(log_reader(folder).take().size() == 702);
    a.note(1, "last");
    std::filesystem::remove_all(folder);
    CHECK(lines_of(reader.take()) == std::vector<std::string>{"a:last"});
    CHECK(reader.take().empty());
}

TEST_CASE("the size of log files is limited for any amount of output of a stage") {
    const world w;
    console silent(-1, false, false);
    log_sink a(silent, "a", 1, 0, w.path("a.jsonl"));
    const std::string text(8000, 'x');
    for (int k = 0; k < 2000; ++k) a.note(1, text);  // 16 MB
    CHECK(std::filesystem::file_size(w.path("a.jsonl")) + std::filesystem::file_size(w.path("a.jsonl.1")) <
          (9U << 20U));
}

TEST_CASE("logs --since accepts durations and times, and quotes a value that it can't read") {
    CHECK(since_from("10s", 1000) == 990);
    CHECK(since_from("1.5m", 1000) == 910);
    CHECK(since_from("2h", 10000) == 2800);
    CHECK(since_from("1970-01-01T00:01:00Z", 0) == 60);
    CHECK(since_from("1970-01-01T01:01:00.5+01:00", 0) == 60.5);
    CHECK(timestamp_text(since_from("2026-01-31T12:00:00.250Z", 0)) == "2026-01-31T12:00:00.250Z");
    for (const char* bad :
         {"", "soon", "10", "10x", "-5s", "2026-13-01T00:00:00Z", "2026-01-31", "10s ago"}) {
        INFO(bad);
        CHECK_THROWS_WITH(since_from(bad, 0), contains("--since ") && contains("expected"));
    }
}

TEST_CASE("a graph's names are escaped for the language that it is written in") {
    const drawing d = drawing_of(run::read_ps(ps_of("x\"y\\")), nullptr);
    const std::string dot = dot_text(d), mermaid = mermaid_text(d);
    CHECK_THAT(dot, contains("digraph \"x\\\"y\\\\\" {") && contains("a x 2\\ncpu") && contains("s0 -> s1") &&
                        contains("style=dashed"));
    CHECK_THAT(dot, contains("my \\\"type\\\" <x>\\\\\\n15 slots x 1.0 KiB, memfd\\nlatest"));
    CHECK_THAT(mermaid, contains("flowchart LR\n") && contains("s0[\"a x 2<br/>cpu\"]") &&
                            contains("s0 -.->|\"my #quot;type#quot; #lt;x#gt;"));
    const telemetry::snapshot none;
    CHECK_THAT(dot_text(drawing_of(run::read_ps(ps_of("x")), &none)),
               contains("1 failed, 1 running, 10.0 frames/s"));
    CHECK_THROWS_WITH(drawing_of(run::read_ps(json::object()), nullptr), contains("have the same version"));
}

TEST_CASE("top cuts its lines to the terminal, with colours as without") {
    telemetry::snapshot s;
    s.pipeline = "demo";
    s.stages.resize(1);
    s.stages[0].name = "geometry";
    s.stages[0].seats = 1;
    s.seats.resize(1);
    s.seats[0].stage = 0;
    s.seats[0].pid = 4711;
    s.seats[0].state = ring::entry_state::live;
    s.links.resize(1);
    s.links[0].name = "geometry";
    s.links[0].slots.resize(4);
    s.links[0].slots[1].phase = telemetry::slot_phase::ready;
    s.links[0].slots[2].phase = telemetry::slot_phase::quarantined;
    CHECK(slot_letters(s.links[0]) == ".R!.");
    telemetry::rate_tracker rates;
    rates.feed(s);
    top_input in;
    in.snap = &s;
    in.rates = &rates.now();
    std::string all;
    for (const std::string& line : top_lines(in)) all += line + "\n";
    CHECK_THAT(all, contains("demo") && contains("4711") && contains("running") && contains(".R!."));
    in.width = 20;
    in.rows = 3;
    const std::vector<std::string> plain = top_lines(in);
    CHECK(plain.size() == 3);
    for (const std::string& line : plain) CHECK(width_of(line) <= 20);
    in.color = true;
    in.rows = 0;
    for (std::string line : top_lines(in)) {
        for (std::size_t at; (at = line.find('\x1b')) != std::string::npos;)
            line.erase(at, line.find('m', at) - at + 1);
        CHECK(width_of(line) <= 20);
    }
}

TEST_CASE("at 80 x 24 top keeps state, rate, busy, latency and slots of all stages, also after a kill") {
    telemetry::snapshot s;
    s.pipeline = "demo";
    json rows = json::array();
    const char* names[] = {"geometry", "vertex", "fragment", "display"};
    telemetry::rates rates;
    rates.span_s = 2;
    for (u32 k = 0; k < 4; ++k) {
        s.stages.emplace_back();
        s.stages[k].name = names[k];
        s.stages[k].first_seat = k;
        s.stages[k].seats = 1;
        if (k < 3) s.stages[k].outputs = {k};
        s.seats.emplace_back();
        s.seats[k].stage = k;
        s.seats[k].pid = 1234567 + k;
        s.seats[k].epoch = 12;
        s.seats[k].state = ring::entry_state::live;
        rates.stages.emplace_back();
        rates.stages[k].frames_per_second = 8123.4;
        rates.stages[k].time = {0.2 * k + 0.31, k == 2 ? 0.1 : 0.5, 0, 0};
        rates.stages[k].latency_p50_ms = 12.34;
        rates.stages[k].latency_p99_ms = 123.4;
        rates.stages[k].end_to_end_p50_ms = 123.4;
        rates.stages[k].end_to_end_p99_ms = 234.5;
        rates.stages[k].from_capture_p50_ms = 345.6;
        rates.stages[k].from_capture_p99_ms = 456.7;
        rates.cpu.push_back(0.98);
        rows.push_back({{"name", names[k]},
                        {"state", "running"},
                        {"age_s", 754.0},
                        {"last_exit", k == 2 ? json("signal 9 (SIGKILL)") : json()},
                        {"memory_bytes", 123456789},
                        {"device", "cuda:0"}});
        if (k == 3) break;
        s.links.emplace_back();
        s.links[k].name = names[k];
        s.links[k].newest = 123456789;
        s.links[k].slots.resize(17);
        s.links[k].groups.resize(2);
        s.links[k].groups[0].stage = k + 1;
        s.links[k].groups[0].lag = 14;
        s.links[k].groups[1].state = ring::group_state::latest;
        rates.links.push_back({8123.4, 8123.4, 1.5e11, {0, 0}});
    }
    const std::deque<telemetry::run_event> events(
        3, {1, telemetry::event_kind::bad, 2, "fragment (pid 1234569) died: signal 9 (SIGKILL)"});
    top_input in;
    in.snap = &s;
    in.rates = &rates;
    in.events = &events;
    const json pipeline{
        {"state", "running"}, {"state_text", "running"}, {"device", "cuda:0"}, {"uptime_s", 754.0}};
    in.ps = run::read_ps({{"pipeline", pipeline}, {"stages", rows}});
    for (const std::size_t width : {80, 60, 100, 132}) {
        in.width = width;
        in.rows = 24;
        const std::vector<std::string> lines = top_lines(in);
        CHECK(lines.size() <= 24);
        std::string all;
        for (const std::string& line : lines) {
            CHECK(width_of(line) <= width);
            all += line + "\n";
        }
        INFO(all);
        for (const char* title : {"STAGE", "STATE", "FRAMES/S", "BUSY", "P50 MS", "P99 MS", "SLOTS"})
            CHECK_THAT(all, contains(title));
        for (u32 k = 0; k < 4; ++k) {
            const auto row = std::find_if(lines.begin(), lines.end(),
                                          [&](const std::string& l) { return l.starts_with(names[k]); });
            REQUIRE(row != lines.end());
            CHECK_THAT(*row, contains("running") && contains("8123") &&
                                 contains(fmt::format("{:.0f}%", 20.0 * k + 31)) && contains("12.3") &&
                                 contains("123.4"));
        }
        for (u32 k = 0; k < 3; ++k)
            CHECK(std::any_of(lines.begin(), lines.end(), [&](const std::string& l) {
                return l.starts_with(names[k]) && l.ends_with(std::string(17, '.'));
            }));
        CHECK_THAT(all, contains("signal 9 (SIGKILL)") && contains("bottleneck: fragment"));
        if (width >= 80) CHECK_THAT(all, contains("bottleneck: fragment (busy 71 %)"));
        if (width >= 100) CHECK_THAT(all, contains("from capture 345.6 ms (p99 456.7)"));
    }
}

TEST_CASE("a name that is longer than the screen is cut with an ellipsis, the figures stay") {
    table t({"NAME", ">FIGURE", "MORE"});
    t.add({"a name that is far too long", "42", "and more of it"});
    t.fit(20, {{"MORE"}, {"NAME", 6}});
    CHECK(t.text() == "NAME          FIGURE\na name that\u2026      42\n");
    t.fit(4, {{"NAME", 6}});
    CHECK(t.text() == "NAME    FIGURE\na nam\u2026      42\n");
}

TEST_CASE("hints name a command that works in the user's working directory") {
    const world w;
    const std::string program = w.program("bin/carousel", ":");
    CHECK(command_for(program, "/elsewhere", "/usr/bin:" + w.path("bin")) == "carousel");
    CHECK(command_for(program, w.folder(), "/usr/bin:/bin") == "bin/carousel");
    CHECK(command_for(program, w.path("bin"), "/usr/bin") == "./carousel");
    CHECK(command_for(program, "/elsewhere", "") == program);
    const std::string other =
        w.program("other/carousel", ":");  // another version precedes it: its name would not identify it
    CHECK(command_for(program, w.folder(), w.path("other") + ":" + w.path("bin")) == "bin/carousel");
    CHECK(shell_word("a b'c") == "'a b'\\''c'");
    CHECK(shell_word("") == "''");
}
