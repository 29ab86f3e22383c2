#pragma once
// The names of stages and seats in messages about their words.

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "shm/control_block.hpp"

namespace carousel::ring {

/// `made`: the supervisor's own copy of the block as it was made; the index may be any number.
[[nodiscard]] inline std::string stage_name(const shm::control_block& made, u32 stage) {
    return stage < std::min(made.stages, shm::max_stages) ? std::string(made.stage[stage].name)
                                                          : fmt::format("stage {}", stage);
}

/// "vertex", or "vertex.1" if the stage has several seats.
[[nodiscard]] inline std::string seat_name(const shm::control_block& made, u32 seat) {
    const shm::seat_block& s = made.seat[std::min(seat, shm::max_seats - 1)];
    const bool several = s.stage < shm::max_stages && made.stage[s.stage].seats > 1;
    return several ? fmt::format("{}.{}", stage_name(made, s.stage), s.instance) : stage_name(made, s.stage);
}

}  // namespace carousel::ring
