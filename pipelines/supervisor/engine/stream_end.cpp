#include "supervisor/engine/stream_end.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/crash_point.hpp"
#include "ring/stream_end.hpp"

namespace carousel::supervisor {

void stream_end::watch() {
    const auto found = ring::claimed_end(block_->block());
    if (!found || found->ring_sequence >= block_->end()) return;
    lower(block_->published().source[std::min(found->source, shm::max_sources - 1)].stage,
          found->ring_sequence);
}

void stream_end::lower(u32 stage, u64 at) {
    facts_->stream_ended_by = stage;
    block_->set_end(at);
    save_();
    crash_here(crash_point::end_kept);
    (void)ring::lower_end(block_->block(), block_->end());
    seats_->log_line(
        fmt::format("the stream of {} ends before frame {}", setup_->stages[stage].spec.name, block_->end()));
}

void stream_end::end(const std::string& stage, u64 at, const std::string& why) {
    if (at >= block_->end()) return;
    for (u32 k = 0; k < setup_->stages.size(); ++k) {
        const stage_setup& s = setup_->stages[k];
        if (s.spec.name != stage || !s.receives()) continue;
        seats_->log_line(why);
        return lower(k, at);
    }
}

void stream_end::adopt(u32 ended_by) {
    if (ended_by >= setup_->stages.size() || !setup_->stages[ended_by].ends) return;
    if (block_->end() == ring::end_unknown || block_->end() == ring::end_stopping) return;
    facts_->stream_ended_by = ended_by;
    (void)ring::lower_end(block_->block(), block_->end());
}

}  // namespace carousel::supervisor
