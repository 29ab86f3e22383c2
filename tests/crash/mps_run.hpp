#pragma once
// Runs of number stages on the CPU that the supervisor treats as clients of an MPS domain
// (CAROUSEL_TEST_MPS_ON_CPU), with a fake daemon.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/io.hpp"
#include "tests/crash/run_fixture.hpp"
#include "tests/pipelines/supervisor/mps/fake_mps/fake_mps.hpp"
#include "tests/support/catch.hpp"

namespace carousel::test {

inline const std::vector<std::string> mps_stages{"numbers", "middle", "sink"};

inline std::vector<std::string> with_fake(const run_fixture& run, const std::string& how = "") {
    return {"PATH=" + path_with_fake_mps(run.path("fake"), how, run.path("asked")),
            "CAROUSEL_TEST_MPS_ON_CPU=1"};
}

/// Also from a run without MPS: the hash does not depend on it.
inline const std::string& undisturbed_mps_hash(const std::string& frames) {
    static const std::string hash = [&] {
        run_fixture quiet;
        quiet.start(quiet.pipeline("calm", number_pipeline("calm")), {"--frames", frames});
        REQUIRE(quiet.wait() == 0);
        return quiet.report()["image_hash"].get<std::string>();
    }();
    return hash;
}

inline std::vector<i32> pids_of(run_fixture& run) {
    std::vector<i32> pids;
    pids.reserve(mps_stages.size());
    for (const std::string& s : mps_stages) pids.push_back(run.pid_of(s));
    return pids;
}

inline nlohmann::json domain_of(run_fixture& run) { return run.ask({{"type", "ps"}})["pipeline"]["mps"]; }

inline constexpr const char* stands_by = "standby = true\n";

inline std::string with_standbys(const std::string& name, const std::string& more = "",
                                 const std::string& middle = stands_by) {
    return number_pipeline(name, "isolation = \"mps\"\nfps = 250\nsupervisor_grace_s = 20\n" + more, middle,
                           stands_by, stands_by);
}

/// The pids of the ready standbys, 0 for a stage that has none.
inline std::vector<i32> standbys_of(run_fixture& run) {
    std::vector<i32> pids;
    for (const std::string& stage : mps_stages) {
        const nlohmann::json s = run.stage(stage);
        const bool ready = s.value("standby", nlohmann::json()) == "ready" && s["standby_pid"].is_number();
        pids.push_back(ready ? s["standby_pid"].get<i32>() : 0);
    }
    return pids;
}

/// Waits until every stage has a ready standby that is not among `old`.
inline std::vector<i32> all_standbys(run_fixture& run, const std::vector<i32>& old = {}) {
    std::vector<i32> found;
    (void)run.wait_until([&] {
        found = standbys_of(run);
        return std::none_of(found.begin(), found.end(), [&](i32 pid) {
            return pid == 0 || std::find(old.begin(), old.end(), pid) != old.end();
        });
    });
    return found;
}

}  // namespace carousel::test
