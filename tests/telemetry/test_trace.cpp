// The trace's rings and what is made of them: torn and half-written records, overruns, killed writers, and a
// small trace whose text is looked at. tests/pipelines/cli/test_trace.py traces real pipelines.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "telemetry/trace_file.hpp"
#include "telemetry/trace_ring.hpp"
#include "tests/support/catch.hpp"

namespace carousel {
namespace {

using namespace telemetry;
using nlohmann::json;

/// A trace block of a run that does not exist.
struct rings {
    explicit rings(u32 seats = 1)
        : id("test" + std::to_string(::getpid())), segment(shm::trace_segment::create(id, seats)) {}
    ~rings() { shm::trace_segment::remove(id); }
    std::string id;
    shm::trace_segment segment;
    [[nodiscard]] shm::trace_ring& ring(u32 seat = 0) const { return *segment.ring(seat); }
};

stamp numbered(u64 n) {
    return {stamp_kind::claimed, 1, wait_reason::input, false, 3, n, n * 3 + 1, n * 5 + 2, n * 7 + 3};
}
bool is_whole(const stamp& s) {
    return s.a == s.ring_sequence * 3 + 1 && s.b == s.ring_sequence * 5 + 2 && s.c == s.ring_sequence * 7 + 3;
}

}  // namespace

TEST_CASE("a record that its writer has left at any store is passed by, and the next one is read") {
    const rings r;
    for (u32 done = 0; done <= shm::trace_words; ++done) {
        trace_reader reader(r.segment, 0);
        append(r.ring(), numbered(100 + done));
        // The steps of append() before the store at which the writer dies.
        const u64 number = r.ring().head.fetch_add(1);
        for (u32 k = 0; k < done; ++k)
            r.ring().record[number % shm::trace_records].field[k].store(k == 1 ? 7 : 1);
        append(r.ring(), numbered(200 + done));
        reader.poll();
        CHECK(reader.attempts().size() == 2);
        CHECK(reader.unfinished() == 1);
        CHECK(reader.overwritten() == 0);
    }
}

TEST_CASE("a record that is written later than its follower is still read") {
    const rings r;
    trace_reader reader(r.segment, 0);
    const u64 number = r.ring().head.fetch_add(1);  // taken, not written
    append(r.ring(), numbered(2));
    reader.poll();
    CHECK(reader.attempts().size() == 1);
    r.ring().head.store(number);  // append() takes the same number
    append(r.ring(), numbered(1));
    r.ring().head.store(number + 2);
    reader.poll();
    CHECK(reader.attempts().size() == 2);
    CHECK(reader.unfinished() == 0);
}

TEST_CASE("records that a slow reader missed are counted, and the newest ring is read whole") {
    const rings r;
    trace_reader reader(r.segment, 0);
    for (u64 n = 0; n < shm::trace_records + 100; ++n) append(r.ring(), numbered(n));
    reader.poll();
    CHECK(reader.overwritten() == 100);
    CHECK(reader.attempts().size() == shm::trace_records);
    for (const attempt& a : reader.attempts())
        CHECK((a.ring_sequence >= 100 && a.claimed_ns == a.ring_sequence * 3 + 1));
}

TEST_CASE("two processes that write into one ring and are killed at random leave no torn frame") {
    const rings r;
    u64 taken = 0;
    for (int round = 0; round < 30; ++round) {
        pid_t child[2];
        for (int k = 0; k < 2; ++k) {
            child[k] = ::fork();
            if (child[k] == 0)
                for (u64 n = 0;; ++n) append(r.ring(), numbered(n % 1000));
        }
        const u64 until = now_ns() + 3 * ns_per_ms + static_cast<u64>(round) * 100'000;
        u64 next = r.ring().head.load();
        stamp s;
        while (now_ns() < until || round < 0) {
            for (const u64 head = r.ring().head.load(); next < head; ++next)
                if (read(r.ring(), next, s)) {
                    ++taken;
                    if (!is_whole(s)) FAIL("a torn record was taken");
                }
        }
        for (const pid_t p : child) {
            ::kill(p, SIGKILL);
            ::waitpid(p, nullptr, 0);
        }
        for (u64 n = next > shm::trace_records ? next - shm::trace_records : 0; n < r.ring().head.load(); ++n)
            if (read(r.ring(), n, s) && !is_whole(s)) FAIL("a torn record lay there after the death");
    }
    CHECK(taken > 1000);
}

TEST_CASE("trace rings of another size, version or half made are refused") {
    const rings r(2);
    CHECK(r.segment.seats() == 2);
    CHECK(r.segment.ring(2) == nullptr);
    CHECK(shm::trace_segment::attach(r.id, false).seats() == 2);
    r.segment.block().seats = 3;
    CHECK_THROWS_AS(shm::trace_segment::attach(r.id, false), shm_error);
    r.segment.block().seats = 2;
    r.segment.block().magic.store(0);
    CHECK_THROWS_AS(shm::trace_segment::attach(r.id, true), shm_error);
    CHECK_THROWS_AS(shm::trace_segment::attach("no-such-run", true), shm_error);
}

namespace {

snapshot two_stages(u64 tail) {
    snapshot s;
    s.pipeline = "small \"one\"";
    s.run_id = "x";
    s.stages.resize(2);
    s.stages[0] = {};
    s.stages[0].name = "numbers";
    s.stages[0].source = true;
    s.stages[0].outputs = {0};
    s.stages[0].seats = 1;
    s.stages[1].name = "sink";
    s.stages[1].inputs = {0};
    s.stages[1].outputs = {};
    s.stages[1].seats = 1;
    s.seats.resize(2);
    s.seats[0].stage = 0;
    s.seats[0].epoch = 1;
    s.seats[1].stage = 1;
    s.seats[1].epoch = 2;
    s.links.resize(1);
    s.links[0].name = "numbers";
    s.links[0].tail = tail;
    return s;
}

attempt made(u64 ring_sequence, u32 seat, u32 epoch, u64 at, bool is_complete) {
    attempt a;
    a.ring_sequence = ring_sequence;
    a.seat = seat;
    a.epoch = epoch;
    a.claimed_ns = at;
    a.process_ns = at + 10;
    a.submitted_ns = at + 20;
    if (is_complete) a.complete_ns = at + 30, a.committed_ns = at + 40, a.finished_ns = at + 50;
    return a;
}

trace_summary summary_of(const snapshot& shape, const std::vector<attempt>& attempts) {
    const std::vector<idle_time> waits;
    trace_content c;
    c.shape = &shape;
    c.attempts = &attempts;
    c.waits = &waits;
    c.end_ns = 10'000;
    trace_summary s;
    CHECK(json::accept(trace_json(c, s)));
    return s;
}

const json* bar_of(const json& trace, u32 pid, u64 ring_sequence, const std::string& category) {
    for (const json& e : trace.at("traceEvents"))
        if (e.at("ph") == "X" && e.at("cat") == category && e.at("pid") == pid &&
            e.at("args").at("ring_sequence") == ring_sequence)
            return &e;
    return nullptr;
}

}  // namespace

TEST_CASE("a frame whose owner died after its commit appears once, and repeated work is discarded") {
    const snapshot shape = two_stages(3);
    const std::vector<attempt> attempts = {
        made(0, 0, 1, 1000, true),  made(0, 1, 1, 2000, true), made(1, 0, 1, 3000, true),
        made(1, 1, 1, 4000, false), made(1, 1, 2, 9000, true), made(2, 0, 1, 5000, true),
        made(2, 1, 1, 4100, false),  // the sink died while it processed two: 2 had committed
        made(3, 0, 1, 9500, false)};
    trace_content c;
    const std::vector<idle_time> waits = {{1, 2, wait_reason::input, 8000, 8500}};
    c.shape = &shape;
    c.attempts = &attempts;
    c.waits = &waits;
    c.notes = {{400, 0, 7, "died", "before the recording"},
               {10'500, 0, 8, "died", "behind it"},
               {6000, 1, 1, "died", "(pid 7) died: signal 9 (SIGKILL); 2 frames in flight"},
               {7000, 99, 1, "died", "nobody"}};
    c.facts[{0, 1}] = R"({"exposure_ms":3.5})";
    c.begin_ns = 500;
    c.end_ns = 10'000;
    trace_summary s;
    const json t = json::parse(trace_json(c, s));
    CHECK(bar_of(t, 2, 1, "frame")->at("args").at("carries") == json{{"exposure_ms", 3.5}});
    CHECK_FALSE(bar_of(t, 3, 1, "frame")->at("args").contains("carries"));
    CHECK(s.frames == 3);
    CHECK(s.first == 0);
    CHECK(s.last == 2);
    CHECK(s.missing == 0);
    CHECK(s.lost_attempts == 1);
    CHECK(s.deaths == 1);
    CHECK(bar_of(t, 3, 0, "frame") != nullptr);
    CHECK(bar_of(t, 3, 1, "discarded")->at("args").at("epoch") == 1);
    CHECK(bar_of(t, 3, 1, "discarded")->at("dur") == 2.0);  // to the death
    CHECK(bar_of(t, 3, 1, "frame")->at("args").at("epoch") == 2);
    CHECK(bar_of(t, 3, 2, "frame")->at("args").at("note").get<std::string>().find("after the commit") !=
          std::string::npos);
    CHECK(bar_of(t, 2, 3, "frame")->at("args").at("note").get<std::string>().find("still in flight") !=
          std::string::npos);
    u32 instants = 0;
    for (const json& e : t.at("traceEvents"))
        if (e.at("ph") == "i") {
            ++instants;
            CHECK(e.at("name") == "sink (pid 7) died: signal 9 (SIGKILL); 2 frames in flight");
        }
    CHECK(instants == 1);
}

TEST_CASE("a frame of which a stage's stamps were lost is counted as missing, never invented") {
    const snapshot shape = two_stages(2);
    const std::vector<attempt> attempts = {made(0, 0, 1, 1000, true), made(0, 1, 2, 2000, true),
                                           made(1, 0, 1, 3000, true)};
    const trace_summary s = summary_of(shape, attempts);
    CHECK(s.frames == 2);
    CHECK(s.missing == 1);
}

TEST_CASE("a chain at another frame when the trace begins misses no frame of another chain") {
    // Frames 0 and 1 of the first chain; of the second one, which is faster, they were done before.
    snapshot shape = two_stages(2);
    shape.stages.resize(4);
    shape.seats.resize(4);
    shape.links.resize(2);
    shape.links[0].stage = 0, shape.links[1].stage = 2, shape.links[1].tail = 300;
    shape.stages[1].inputs = {0}, shape.stages[3].inputs = {1};
    shape.stages[2].source = true, shape.stages[2].name = "fast", shape.stages[3].name = "fastsink";
    shape.stages[2].first_seat = 2, shape.stages[3].first_seat = 3;
    shape.seats[2].stage = 2, shape.seats[3].stage = 3;
    shape.seats[2].epoch = shape.seats[3].epoch = 1;
    std::vector<attempt> attempts = {made(0, 0, 1, 1000, true), made(0, 1, 2, 2000, true),
                                     made(1, 0, 1, 3000, true), made(1, 1, 2, 4000, true),
                                     made(299, 2, 1, 1000, true)};
    const bool is_there = GENERATE(false, true);  // frame 1 of the fast source: then its sink's is missing
    if (is_there) attempts.push_back(made(1, 2, 1, 3000, true));
    const trace_summary s = summary_of(shape, attempts);
    CHECK(s.frames == 2);
    CHECK(s.missing == (is_there ? 1 : 0));
}

TEST_CASE("traces of two hosts are joined by the clock offset, and a frame's flow spans both") {
    const snapshot shape = two_stages(1);
    const std::vector<idle_time> waits;
    constexpr u64 remote_begin = 8'001'000'000;
    const auto traced = [&](u64 begin, u64 claimed, std::map<std::string, trace_clock> clocks) {
        const std::vector<attempt> attempts = {made(0, 0, 1, begin + claimed, true),
                                               made(0, 1, 2, begin + claimed + 1000, true)};
        trace_content c;
        c.shape = &shape;
        c.attempts = &attempts;
        c.waits = &waits;
        c.begin_ns = begin;
        c.end_ns = begin + 50'000'000;
        c.clocks = std::move(clocks);
        c.overwritten = begin == remote_begin ? 3 : 0;
        trace_summary s;
        return trace_json(c, s);
    };
    // Host b's clock is 7 s ahead; its trace was begun 1 ms later.
    const std::string coordinator = traced(1'000'000'000, 100'000, {{"b", {7'000, 0.25}}}),
                      remote = traced(remote_begin, 300'000, {});
    std::vector<std::string> warnings;
    const json t = json::parse(join_traces(coordinator, {{"b", remote}}, &warnings));
    REQUIRE(warnings.size() == 1);  // a part with gaps is reported
    CHECK_THAT(warnings[0], test::contains("on host b, 3 stamps were overwritten"));
    std::map<std::string, i64> processes;
    std::vector<std::pair<f64, std::string>> flow;
    std::map<i64, f64> claimed;
    for (const json& e : t.at("traceEvents")) {
        const std::string ph = e.at("ph");
        if (ph == "M" && e.at("name") == "process_name") processes[e.at("args").at("name")] = e.at("pid");
        if (ph == "s" || ph == "t" || ph == "f") flow.emplace_back(e.at("ts"), ph);
        if (ph == "X" && e.value("cat", "") == "frame") claimed[e.at("pid")] = e.at("ts");
    }
    REQUIRE(processes.contains("b/sink"));
    REQUIRE(processes.contains("sink"));
    CHECK(processes["b/sink"] != processes["sink"]);
    CHECK(claimed[processes["sink"]] == Approx(101));  // us
    CHECK(claimed[processes["b/sink"]] == Approx(1'301));
    std::sort(flow.begin(), flow.end());
    std::string way;
    for (const auto& [at, ph] : flow) way += ph;
    CHECK(way == "sttf");
    CHECK(t.at("otherData").at("joined")[0].at("error_ms") == 0.25);

    CHECK_THROWS_WITH(join_traces(remote, {{"b", coordinator}}),
                      test::contains("has no clock of host b; it has none"));
    CHECK_THROWS_WITH(join_traces(coordinator, {{"b", "{}"}}),
                      test::contains("the trace of host b was not written by"));
    CHECK_THROWS_AS(join_traces("[1", {{"b", remote}}), config_error);
}

// Not a test: prints a figure. test_trace "the look at the flag*"
TEST_CASE("the check of the flag without a trace", "[.]") {
    const auto block = std::make_unique<shm::control_block>();
    trace_writer writer(*block, 0, 1);
    constexpr u32 iterations = 100'000, rounds = 101;
    std::vector<f64> ns;
    for (u32 r = 0; r < rounds; ++r) {
        const u64 began = now_ns();
        u32 on = 0;
        for (u32 k = 0; k < iterations; ++k) on += writer.on(began + k) ? 1 : 0;
        ns.push_back(static_cast<f64>(now_ns() - began) / iterations);
        REQUIRE(on == 0);
    }
    std::sort(ns.begin(), ns.end());
    std::printf("%.2f ns a look at the median, %.2f at p95\n", ns[rounds / 2], ns[rounds * 95 / 100]);
}

}  // namespace carousel
