// engine: a source that ends its stream (ring/stream_end.hpp). END has one writer, this process: it lowers
// END to the claim, whatever was requested before. It saves that decision first: a supervisor that takes the
// run over checks END against it.
#include <fmt/format.h>

#include <algorithm>

#include "core/crash_point.hpp"
#include "ring/stream_end.hpp"
#include "supervisor/engine/engine.hpp"

namespace carousel::supervisor {

// Called in each tick, before a stop determines an END of its own. unknown and STOPPING are above every
// number.
void engine::watch_stream_end() {
    const auto found = ring::claimed_end(segment_->block());
    if (!found || found->ring_sequence >= end_) return;
    end_stream_of(made_->source[std::min(found->source, shm::max_sources - 1)].stage, found->ring_sequence);
}

void engine::end_stream_of(u32 stage, u64 at) {
    stream_ended_by_ = stage;
    set_end(at);
    save_state();
    crash_here(crash_point::end_kept);
    (void)ring::lower_end(segment_->block(), end_);
    seats_->log_line(
        fmt::format("the stream of {} ends before frame {}", setup_->stages[stage].spec.name, end_));
}

// Takes the role of a claim (E2 of ring/PROTOCOL.md). The sender to this stage is done and complete, so the
// stage has leased no number for a frame that does not exist. A block that is being rebuilt begins with this
// END.
void engine::end_the_stream(const std::string& stage, u64 at, const std::string& why) {
    if (phase_ == phase::leaving || phase_ == phase::ending || at >= end_) return;
    for (u32 k = 0; k < setup_->stages.size(); ++k) {
        const stage_setup& s = setup_->stages[k];
        if (s.spec.name != stage || !s.receives()) continue;
        seats_->log_line(why);
        return end_stream_of(k, at);
    }
}

/// The dead supervisor may have saved the END without lowering it in the block.
void engine::adopt_stream_end(u32 ended_by) {
    if (ended_by >= setup_->stages.size() || !setup_->stages[ended_by].ends) return;
    if (end_ == ring::end_unknown || end_ == ring::end_stopping) return;
    stream_ended_by_ = ended_by;
    (void)ring::lower_end(segment_->block(), end_);
}

/// Frames that other sources may have begun beyond a lowered END: a ring may be ahead of the one downstream
/// by a window.
u64 engine::surplus() const noexcept {
    u64 frames = 0;
    for (u32 k = 0; k < made_->links && stream_ended_by_ != shm::none; ++k) frames += made_->link[k].window;
    return frames;
}

}  // namespace carousel::supervisor
