#include "tests/crash/crash_drive.hpp"

#include <fmt/format.h>

#include <csignal>

#include "tests/support/catch.hpp"

namespace carousel::test {
using nlohmann::json;

std::string undisturbed_hash(u64 frames, const std::string& keys) {
    run_fixture run;
    run.start(run.pipeline("calm", number_pipeline("calm", "", keys, keys, keys)),
              {"--frames", std::to_string(frames)});
    REQUIRE(run.wait() == 0);
    return run.report()["image_hash"];
}

void check_whole(run_fixture& run, u64 frames, const std::string& hash, std::size_t deaths) {
    const json r = run.report();
    REQUIRE(r.contains("image_hash"));
    CHECK(r["frames"] == frames);
    check_undamaged(r);
    CHECK(r["dead_letters"].empty());
    CHECK(r["image_hash"] == hash);
    CHECK(r["restarts"].get<std::size_t>() >= deaths);
    CHECK(run.leftovers() == "");
}

bool makes_progress(run_fixture& run) {
    const auto frames = [&] {
        const json p = run.ask({{"type", "ps"}});
        return p.contains("pipeline") ? p["pipeline"]["frames"].get<u64>() : 0;
    };
    u64 last = 0;
    return run.wait_until([&] { return (last = frames()) != 0; }) &&
           run.wait_until([&] { return frames() > last + 100; });
}

void end_intact(run_fixture& run, std::size_t deaths, const std::string& keys) {
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    INFO(run.log());
    const json r = run.report();
    REQUIRE(r.contains("frames"));
    const u64 frames = r["frames"];
    check_whole(run, frames, undisturbed_hash(frames, keys), deaths);
}

void drive(const std::string& how, bool set_up, u64 seed, const std::string& keys) {
    CAPTURE(how, seed);
    const std::vector<crash_point> starts = set_up ? set_up_points() : std::vector<crash_point>{};
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add_incarnations("numbers", role::source, how, starts, seed);
    plan.add_incarnations("middle", role::middle, how, starts, seed + 1);
    // A sink with state fills slots, as the stages before it do.
    const bool fills = keys.find("state = true") != std::string::npos;
    plan.add_incarnations("sink", fills ? role::middle : role::sink, how, starts, seed + 2);
    plan.write();
    run.start(run.pipeline("points", number_pipeline("points", crash_keys, keys, keys, keys)), {},
              {plan.environment()});
    REQUIRE(run.wait_running());
    const std::size_t before = run.descriptors();
    CHECK(run.wait_until([&] { return plan.pending_lines().empty() || !run.running(); }, 180));
    CHECK(makes_progress(run));
    // A death leaves no descriptor open: as many as before, except for the pair (pidfd, log) of a process
    // that is starting or leaving.
    if (run.wait_running(5)) CHECK(run.wait_until([&] { return run.descriptors() <= before + 2; }, 5));
    end_intact(run, plan.lines(), keys);
    CHECK(plan.pending_lines() == "");
    fmt::print("{}: {} deaths at named points, {} restarts in {:.1f} s\n", how, plan.lines(),
               run.report()["restarts"].get<u64>(), run.report()["seconds"].get<f64>());
}

}  // namespace carousel::test
