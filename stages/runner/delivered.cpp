#include "stages/runner/delivered.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ledger/ledger.hpp"

namespace carousel::stages {
namespace {

// If a sender releases frames without asking a sink, that sink can never get them again. So damage that the
// supervisor has not repaired yet (of the number of stages, a count or an index) must not cause a sink to
// be left out: two words must agree before a place is treated as empty, and two words must agree before a
// stage is treated as having an output. A stage that appears to be a sink because of such damage has no
// ledger, and blocks the sender until the repair.
bool is_sink(const shm::control_block& c, u32 k) noexcept {
    const shm::stage_block& s = c.stage[k];
    const bool there = k < c.stages || s.name[0] != 0;
    const bool has_output = s.outputs != 0 && s.output_link[0] != shm::none;
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

}  // namespace carousel::stages
