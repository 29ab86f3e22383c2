#include "supervisor/engine/lost_frame.hpp"

#include <algorithm>

#include "ring/words.hpp"

namespace carousel::supervisor {
namespace {

/// True if all rings of the stage have passed on the frame. A damaged tail reads as 0.
bool have_passed(const shm::stage_block& stage, const shm::control_block& c, u64 frame) noexcept {
    for (u32 i = 0; i < std::min(stage.inputs, shm::max_inputs); ++i)
        if (stage.input_link[i] >= shm::max_links || ring::load(c.link[stage.input_link[i]].tail) <= frame)
            return false;
    return true;
}

}  // namespace

// A sink marks a frame in its ledger before the frame is DONE, and the tail moves beyond the frame only after
// that. Therefore the second read of the ledgers finds a frame marked if it was marked after the first read.
std::optional<telemetry::undelivered_frame> find_lost_frame(
    const run_setup& s, const shm::control_block& made, const shm::control_block& c,
    const std::function<telemetry::undelivered_frame()>& find_undelivered) {
    const telemetry::undelivered_frame undelivered = find_undelivered();
    for (u32 k = 0; k < s.stages.size(); ++k) {
        if (s.stages[k].spec.name != undelivered.sink) continue;
        if (!have_passed(made.stage[k], c, undelivered.frame)) return std::nullopt;
        const telemetry::undelivered_frame again = find_undelivered();
        if (again.frame != undelivered.frame || again.sink != undelivered.sink) return std::nullopt;
        return undelivered;
    }
    return std::nullopt;
}

}  // namespace carousel::supervisor
