// The real runner, its heartbeat and its connection to the supervisor, several of them as threads of one
// process (in_process.hpp). Also one of the race tests: ./tests/run --all repeats them under ThreadSanitizer.
#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "ring/helper.hpp"
#include "ring/stream_end.hpp"
#include "ring/turn.hpp"
#include "tests/stages/in_process.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::test;

TEST_CASE("no helper can commit a frame before its work is queued, whenever it polls") {
    threads_of_a_run run({.stages = 2, .frames = 40, .work_us = 500, .as_cuda = true});
    const auto context = run.memory().open(true);
    ring::helper help(run.control(), *context);
    std::atomic<u64> asked{0}, unfinished{0};
    std::atomic<std::thread::id> source;
    set_crash_hook([&](crash_point at) {
        // only a source passes it, on its main thread
        if (at == crash_point::sequence_leased) source.store(std::this_thread::get_id());
        if (std::this_thread::get_id() != source.load()) return;
        ring::link_ref link(run.control(), 0);
        asked.fetch_add(1);
        if (help.help(link) == 0) return;
        ring::ready_map ready;
        link.read_ready(ready);
        for (u32 k = 0; k < ready.window; ++k)
            if (ready.at[k] && run.value_in(0, ready.at[k].index) != value_of(ready.at[k].ring_sequence, 0))
                unfinished.fetch_add(1);
    });
    run.run();
    set_crash_hook({});
    CHECK(asked.load() > 100);
    CHECK(unfinished.load() == 0);
    CHECK(run.sink().frames.load() == 40);
    CHECK(run.sink().wrong.load() == 0);
}

TEST_CASE("runners, heartbeats and connections as threads: each frame once, without data race") {
    threads_of_a_run run({.stages = 3, .frames = 400, .work_us = 20});
    std::atomic<u32> ready{0}, returned{0};
    std::atomic<bool> over{false};
    std::thread supervisor(
        [&] {  // receives their "ready", dies, and accepts their return as the next supervisor
            shm::message m;
            for (const shm::unique_fd& line : run.supervisor)
                if (shm::receive_message(line.get(), m, 20 * ns_per_s) == shm::receive_status::ok &&
                    m.text.find("ready") != std::string::npos)
                    ready.fetch_add(1);
            const shm::unique_fd listener = shm::listen_at(run.directory() + "/control.sock");
            run.supervisor.clear();
            std::vector<shm::unique_fd> lines;
            while (!over.load() || lines.size() < 3) {
                pollfd p{listener.get(), POLLIN, 0};
                if (lines.size() == 3 || ::poll(&p, 1, 100) <= 0) {
                    if (lines.size() == 3) std::this_thread::sleep_for(std::chrono::milliseconds(10));
                    continue;
                }
                shm::unique_fd line(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
                const bool received =
                    shm::receive_message(line.get(), m, 20 * ns_per_s) == shm::receive_status::ok &&
                    m.text.find("\"return\"") != std::string::npos;
                (void)shm::send_message(line.get(), R"({"ok":true,"log":-1})");
                const bool back =
                    shm::receive_message(line.get(), m, 20 * ns_per_s) == shm::receive_status::ok &&
                    m.text == R"({"type":"back"})";
                returned.fetch_add(received && back ? 1 : 0);
                lines.push_back(std::move(line));
            }
        });
    run.run();
    over.store(true);
    supervisor.join();
    CHECK(run.sink().frames.load() == 400);
    CHECK(run.sink().wrong.load() == 0);
    CHECK(ready.load() == 3);
    CHECK(returned.load() == 3);
    for (u32 k = 0; k < 3; ++k) CHECK(run.control().entry[k].heartbeat_ns.load() > 0);
}

TEST_CASE("a source that ends its stream returns the extra frame, and every runner exits in order") {
    const u64 frames = GENERATE(0, 1, 60);
    CAPTURE(frames);
    threads_of_a_run run({.stages = 3, .frames = 100'000, .work_us = 100, .ends_at = frames});
    std::atomic<bool> over{false};
    std::thread supervisor([&] {
        while (!over.load()) {
            if (const auto end = ring::claimed_end(run.control()))
                (void)ring::lower_end(run.control(), end->ring_sequence);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    run.run();
    over.store(true);
    supervisor.join();
    CHECK(run.control().end.load() == frames);
    CHECK(run.sink().frames.load() == frames);
    CHECK(run.sink().wrong.load() == 0);
    for (u32 k = 0; k < run.control().jobs; ++k)
        CHECK(ring::job_word::of(run.control().job[k].load()).state == ring::job_state::idle);
    for (u32 k = 0; k < run.control().link[0].slots; ++k)
        CHECK(ring::slot_word::of(run.control().link[0].slot[k].load()).state != ring::slot_state::fill);
}

// The middle stage makes its frames here, as if its threads ran late, and its runner finds nothing left to
// do. No supervisor sweeps.
TEST_CASE(
    "a sink passes the last frame of its ring, which it does not take, after the frame's maker has left") {
    constexpr u64 frames = 102;
    threads_of_a_run::options o;
    o.frames = frames;
    o.every = 10;
    o.at_prepared = [](u32 stage, stages::runtime& r) {
        if (stage != 1) return;
        const ring::incarnation_id& id = r.incarnation();
        ring::worker w(r.control(), id.seat, id.entry, id.epoch);
        for (u64 n = 0; n < frames;) {
            (void)w.output(0).sweep();  // not after the last frame, which is made after the sink's last one
            const bool may_begin = n + 1 < frames || w.output(0).tail() == n;
            ring::job j;
            if (may_begin && w.begin(j, 0) == ring::outcome::ok) {
                REQUIRE((w.submit(j) && w.commit(j) && w.complete(j)));
                ++n;
            } else {
                std::this_thread::yield();
            }
        }
    };
    threads_of_a_run run(o);
    run.run();
    CHECK(run.sink().frames.load() == 11);
    CHECK(run.control().link[1].tail.load() == frames);
}

TEST_CASE("runners that take turns use fewer lanes for long frames, report it and deliver all") {
    stages::depth_rule rule;
    rule.sharing = stages::device_sharing::turns;
    rule.lanes_given = rule.window_given = false;
    rule.contexts = 3;
    rule.turn_stages = {0, 1, 2};
    threads_of_a_run run({.stages = 3, .frames = 500, .work_us = 4000, .depth = rule});
    const auto lanes_of = [&](u32 k) {
        return telemetry::depth_view::of(run.control().entry[k].depth.load()).lanes;
    };
    std::atomic<bool> over{false};
    bool seen = false;
    u64 at_first = 0;
    std::thread watcher(
        [&] {  // restarts the count once all have come down, and the frames opened before are done
            while (!over.load() && !(lanes_of(0) == 2 && lanes_of(1) == 2 && lanes_of(2) == 2))
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
            const u64 through = run.sink().frames.load() + 20;
            while (!over.load() && run.sink().frames.load() < through) std::this_thread::yield();
            seen = !over.load();
            at_first = run.control().stage[0].counters.in_flight_high_water.load();
            for (u32 k = 0; k < 3; ++k) run.control().stage[k].counters.in_flight_high_water.store(0);
        });
    run.run();
    over.store(true);
    watcher.join();
    CHECK(seen);
    CHECK(at_first == 3);  // as planned
    CHECK(run.sink().frames.load() == 500);
    CHECK(run.sink().wrong.load() == 0);
    for (u32 k = 0; k < 3; ++k) {
        const shm::incarnation& e = run.control().entry[k];
        const auto d = telemetry::depth_view::of(e.depth.load());
        CHECK(run.control().stage[k].counters.in_flight_high_water.load() <= 2);
        CHECK(d.lanes == 2);
        CHECK(d.window == (k < 2 ? 4 : 0));
        CHECK(d.why == telemetry::depth_reason::turns);
        CHECK(d.work_ns > 5'000'000U);  // the sum of three frames that take 4 ms each
        CHECK(e.work_ns.load() > 0);
    }
}

TEST_CASE("a runner with fixed lanes uses all of them and reports that they are fixed") {
    threads_of_a_run run({.stages = 2, .frames = 100, .work_us = 500});
    run.run();
    CHECK(run.sink().frames.load() == 100);
    const auto d = telemetry::depth_view::of(run.control().entry[0].depth.load());
    CHECK(d.lanes == run.control().stage[0].in_flight);
    CHECK(d.why == telemetry::depth_reason::given);
}

TEST_CASE("runners that take turns deliver all frames, one after the other") {
    stages::depth_rule rule;
    rule.sharing = stages::device_sharing::turns;
    rule.contexts = 3;
    rule.token = 0;
    rule.turn_frames = GENERATE(1U, 2U, 0U);
    CAPTURE(rule.turn_frames);
    threads_of_a_run run({.stages = 3, .frames = 600, .work_us = 50, .as_cuda = true, .depth = rule});
    run.run();
    CHECK(run.sink().frames.load() == 600);
    CHECK(run.sink().wrong.load() == 0);
    u64 taken = 0;
    for (u32 k = 0; k < 3; ++k) taken += run.control().stage[k].counters.turns.load();
    CHECK(taken >= 30);
    CHECK(ring::turn_word::of(run.control().turn[0].token.load()).kind != ring::turn_kind::held);
}

// On a machine with one device, treated as if each ring were on another one.
TEST_CASE("rings on another device give equal frames through the mapping and by copies") {
    threads_of_a_run run({.stages = 3, .frames = 1200, .as_cuda = true, .peer_rings = true});
    run.run();
    CHECK(run.sink().frames.load() == 1200);
    CHECK(run.sink().wrong.load() == 0);
    for (u32 k = 0; k < 3; ++k) CHECK(run.control().stage[k].counters.torn.load() == 0);
    // Two rounds of the trial use copies: of an input, of an output.
    const u32 least[] = {2 * 64, 2 * 2 * 64, 2 * 64};
    for (u32 k = 0; k < 3; ++k) {
        CAPTURE(k);
        CHECK(run.counts(k).copies.load() >= least[k]);
    }
}

TEST_CASE("a frame costs two status steps of the runner, for any inputs and outputs") {
    threads_of_a_run run({.stages = 3, .frames = 300});
    run.run();
    CHECK(run.counts(0).status_steps.load() == 2 * 300);
    CHECK(run.counts(1).status_steps.load() == 2 * 300);
    CHECK(run.counts(2).status_steps.load() == 2 * 300);
}
