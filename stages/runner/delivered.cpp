#include "stages/runner/delivered.hpp"

#include <algorithm>
#include <cstring>

#include "ring/words.hpp"
#include "telemetry/ledger.hpp"

namespace carousel::stages {
namespace {

/// An optional sink that has failed: its group waits for nothing any more.
bool is_left_out(const shm::control_block& c, const shm::stage_block& s) noexcept {
    for (u32 i = 0; i < std::min(s.inputs, shm::max_inputs); ++i) {
        if (s.input_link[i] >= shm::max_links || s.input_group[i] >= shm::max_blocking) continue;
        const u64 raw = ring::load(c.link[s.input_link[i]].group_state[s.input_group[i]]);
        if (ring::group_word::of(raw).state == ring::group_state::closed) return true;
    }
    return false;
}

// What a sender has released for a sink that was not asked can't be had again. So a damaged count, flag or
// number of stages, until the supervisor has mended it, leaves no sink out: two words say that a stage is
// none, or that it reads the newest frames only. That a sink was left out is one word, its group's state,
// which no flip of one bit makes. A stage that counts wrongly has no ledger, or holds the sender up
// meanwhile.
bool is_there(const shm::control_block& c, u32 k) noexcept { return k < c.stages || c.stage[k].name[0] != 0; }
bool has_output(const shm::stage_block& s) noexcept {
    return s.outputs != 0 && s.output_link[0] != shm::none;
}
bool reads_newest(const shm::stage_block& s) noexcept {
    return (s.flags & shm::stage_flag::latest) != 0 && s.input_group[0] == shm::none;
}

bool counts(const shm::control_block& c, const shm::stage_block& s) noexcept {
    return !has_output(s) && !reads_newest(s) && !is_left_out(c, s);
}

}  // namespace

u64 delivered::below() {
    u64 lowest = ~u64{0};
    for (u32 k = 0; k < shm::max_stages; ++k) {
        const shm::stage_block& s = control_->stage[k];
        if (!is_there(*control_, k) || !counts(*control_, s)) continue;
        const std::string name(s.name, ::strnlen(s.name, sizeof s.name));
        const auto ledger = telemetry::ledger_reader::open(telemetry::ledger_path(directory_, name));
        if (!ledger) return below_;
        lowest = std::min(lowest, ledger->first_undelivered(below_));
    }
    if (lowest != ~u64{0}) below_ = std::max(below_, lowest);
    return below_;
}

}  // namespace carousel::stages
