#include "stages/runner/delivered.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ledger/ledger.hpp"
#include "ring/words.hpp"
#include "run/checkpoint.hpp"
#include "shm/sink.hpp"

namespace carousel::stages {
namespace {

// If a sender releases frames without asking a sink, that sink can never get them again. So damage that the
// supervisor has not repaired yet (of the number of stages, a count or an index) must not cause a sink to
// be left out: two words must agree before a place is treated as empty, and two words must agree before a
// stage is treated as having an output. A stage that appears to be a sink because of such damage has no
// ledger, and blocks the sender until the repair. A ring of states does not count as one: it does not have
// the name of its stage.
bool is_sink(const shm::control_block& c, u32 k) noexcept {
    const shm::stage_block& s = c.stage[k];
    const bool there = k < c.stages || s.name[0] != 0;
    const u32 first = s.output_link[0];
    const bool only_states =
        shm::is_sink(s) ||
        (first < shm::max_links && std::strncmp(c.link[first].name, s.name, sizeof s.name) != 0);
    const bool has_output = s.outputs != 0 && first != shm::none && !only_states;
    return there && !has_output;
}

}  // namespace

u64 delivered::below() {
    std::vector<telemetry::counted_sink> sinks;
    for (u32 k = 0; k < shm::max_stages; ++k) {
        const char* const name = control_->stage[k].name;
        if (is_sink(*control_, k))
            sinks.push_back({std::string(name, ::strnlen(name, sizeof control_->stage[k].name)), below_});
    }
    const u64 undelivered = telemetry::find_undelivered(directory_, sinks, below_).frame;
    if (undelivered != telemetry::no_frame) below_ = std::max(below_, undelivered);
    return below_;
}

// A run that was stopped continues at a checkpoint, so it ends like one that loses its memory.
u64 delivered::releasable() {
    const u64 delivered_below = below();
    if (checkpoints_.empty()) return delivered_below;
    const bool has_ended =
        ring::load(control_->stop_asked) == 0 && ring::load(control_->end) <= delivered_below;
    if (has_ended) return delivered_below;
    const std::vector<u64> kept = run::read_checkpoints(checkpoints_);
    return kept.empty() ? 0 : std::min(delivered_below, kept.back());
}

}  // namespace carousel::stages
