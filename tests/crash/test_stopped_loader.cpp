// A loader that is stopped with the mesh partly loaded, for less and for longer than a start may take. The
// second case waits half a minute for that clock, so this program does not use the campaign tests' lock.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <memory>

#include "core/clock.hpp"
#include "ring/participants.hpp"
#include "ring/words.hpp"
#include "shm/process_id.hpp"
#include "shm/segment.hpp"
#include "tests/crash/crash_drive.hpp"
#include "tests/crash/number_run.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;
using enum crash_point;
using ring::load;

constexpr u64 picture_frames = 300;

std::string undisturbed_pictures() {
    static const std::string hash = [] {
        run_fixture run;
        run.start(run.pipeline("calm", picture_pipeline("calm", patient_keys)),
                  {"--frames", std::to_string(picture_frames)});
        REQUIRE(run.wait() == 0);
        return run.report()["image_hash"].get<std::string>();
    }();
    return hash;
}

/// A run of the demo's stages whose geometry is stopped at a step of its loading.
struct stopped_loader {
    run_fixture run;
    crash_plan plan{run.path("plan")};
    crash_point point;
    i32 loader = 0;
    std::unique_ptr<shm::segment> block;

    stopped_loader(crash_point at, const char* keys, std::vector<std::string> environment = {}) : point(at) {
        plan.add("geometry", at, "stop", 1);
        plan.write();
        environment.push_back(plan.environment());
        run.start(run.pipeline("loader", picture_pipeline("loader", keys)),
                  {"--frames", std::to_string(picture_frames)}, environment);
        REQUIRE(run.wait_until([&] {
            return plan.pending_lines().empty() && (loader = run.pid_of("geometry")) > 0 &&
                   shm::is_stopped(loader);
        }));
        block = std::make_unique<shm::segment>(map_block(run));
        CHECK(asset().state == shm::asset_state::loading);
        CHECK(asset().epoch == 1);
    }
    [[nodiscard]] const shm::control_block& c() const { return block->block(); }
    [[nodiscard]] ring::asset_word asset() const { return ring::asset_word::of(load(c().asset[0].state)); }
    /// The entry of the process on the loader's seat.
    [[nodiscard]] const shm::incarnation& sitting() const {
        return c().entry[ring::seat_word::of(load(c().seat[seat_of(c(), "geometry")].current)).entry];
    }
    void ends_intact(u64 restarts, u32 filled_by) {
        CHECK(run.wait() == 0);
        INFO(run.log());
        CHECK(asset().state == shm::asset_state::ready);
        CHECK(asset().epoch == filled_by);
        check_whole(run, picture_frames, undisturbed_pictures(), 0);
        CHECK(run.report()["restarts"] == restarts);
    }
};

}  // namespace

TEST_CASE("a loader that stops and continues within the start timeout is not replaced") {
    const crash_point point = GENERATE(asset_loading, asset_loaded);
    CAPTURE(std::string(name_of(point)));
    stopped_loader l(point, crash_keys);
    // Far beyond the timeout of a running stage (frame_timeout_ms = 400): no frame can wait for one that is
    // starting.
    CHECK(l.run.wait_until([&] { return now_ns() - load(l.sitting().heartbeat_ns) > 1600 * ns_per_ms; }));
    CHECK(l.run.stage("geometry")["state"] == "starting");
    CHECK(l.run.pid_of("geometry") == l.loader);
    REQUIRE(::kill(l.loader, SIGCONT) == 0);
    l.ends_intact(0, 1);
}

TEST_CASE("a loader that stays stopped is replaced at the start timeout and has no effect later") {
    const std::vector<std::string> kill_late{"CAROUSEL_TEST_KILL_DELAY_MS=120000"};
    // All at once, since the start of a stage has thirty seconds. The first two are killed by the supervisor,
    // the other two stay stopped until they are continued. An asset is not reassigned before its loader has
    // ended: the successor waits meanwhile, and finds the data that the loader has stored.
    (void)undisturbed_pictures();
    std::vector<std::unique_ptr<stopped_loader>> all;
    for (const crash_point point : {asset_loading, asset_loaded})
        all.push_back(std::make_unique<stopped_loader>(point, patient_keys));
    for (const crash_point point : {asset_loading, asset_loaded})
        all.push_back(std::make_unique<stopped_loader>(point, patient_keys, kill_late));
    for (std::size_t k = 0; k < all.size(); ++k) {
        stopped_loader& l = *all[k];
        const bool woken = k >= 2;
        CAPTURE(std::string(name_of(l.point)), woken);
        if (woken) {  // the others' runs may be over by now
            i32 next = 0;
            REQUIRE(l.run.wait_until(
                [&] { return (next = l.run.pid_of("geometry")) > 0 && next != l.loader; }, 50));
            // Its successor is alive (it has claimed its entry, its heartbeat advances), and the zombie still
            // has the asset.
            REQUIRE(l.run.wait_until([&] {
                return ring::entry_word::of(load(l.sitting().identity)).pid == static_cast<u32>(next);
            }));
            const u64 beat = load(l.sitting().heartbeat_ns);
            REQUIRE(
                l.run.wait_until([&] { return load(l.sitting().heartbeat_ns) > beat + 200 * ns_per_ms; }));
            CHECK(shm::is_stopped(l.loader));
            CHECK(l.asset().state == shm::asset_state::loading);
            CHECK(l.asset().epoch == 1);
            CHECK(l.run.stage("geometry")["state"] == "starting");
            REQUIRE(::kill(l.loader, SIGCONT) == 0);
        }
        l.ends_intact(1, woken ? 1 : 2);
        CHECK_THAT(l.run.log(),
                   contains(fmt::format(
                       "(pid {}) was stopped by a signal and it has not become ready in time: replacing it",
                       l.loader)));
        const json report = l.run.report();
        const auto end = std::find_if(report["recoveries"].begin(), report["recoveries"].end(),
                                      [&](const json& r) { return r["pid"] == l.loader; });
        REQUIRE(end != report["recoveries"].end());
        CHECK((*end)["ended"] == (woken ? "exit code 71" : "signal 9"));
    }
}
