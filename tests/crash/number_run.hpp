#pragma once
// Number stages in a pipeline's text, and a view of the control block of their run.
#include <fmt/format.h>

#include <string>

#include "ring/participants.hpp"
#include "ring/words.hpp"
#include "shm/segment.hpp"
#include "tests/crash/crash_drive.hpp"
#include "tests/support/catch.hpp"

namespace carousel::test {

/// The lines of a number stage in a pipeline file.
inline std::string number_stage(const std::string& name, const std::string& input,
                                const std::string& more = "") {
    return fmt::format("[[stage]]\nname = \"{}\"\nrun = \"{}/carousel-test-number\"\ninputs = [\"{}\"]\n{}",
                       name, programs(), input, more);
}

/// Maps the run's control block. The run has replied to a request before, so its id is known.
inline shm::segment map_block(run_fixture& run) {
    REQUIRE(run.run_id() != "");
    return shm::segment::observe(run.run_id());
}

/// Has the run's control block rebuilt, as after damage.
inline bool rebuild(run_fixture& run) { return run.ask({{"type", "rebuild"}})["ok"] == true; }

inline const shm::link_block& link_of(const shm::segment& s, const std::string& stage) {
    const shm::control_block& c = s.block();
    const auto* found =
        std::find_if(c.link, c.link + c.links, [&](const shm::link_block& l) { return stage == l.name; });
    REQUIRE(found != c.link + c.links);
    return *found;
}

inline u32 seat_of(const shm::control_block& c, const std::string& stage) {
    for (u32 k = 0; k < c.seats; ++k)
        if (stage == c.stage[c.seat[k].stage].name) return k;
    FAIL("no seat of " + stage);
    return 0;
}

}  // namespace carousel::test
