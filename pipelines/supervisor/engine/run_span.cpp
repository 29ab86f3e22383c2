#include "supervisor/engine/run_span.hpp"

#include <algorithm>

#include "ring/words.hpp"

namespace carousel::supervisor {
namespace {

/// Calls fn(entry) for each process that works or has worked for a stage for which of(stage) is true.
template <typename Of, typename F>
void for_each_process(const shm::control_block& c, Of&& of, F&& fn) {
    for (const shm::incarnation& e : c.entry) {
        const auto owner = ring::entry_word::of(ring::load(e.identity));
        if (owner.state == ring::entry_state::damaged || owner.seat >= std::min(c.seats, shm::max_seats))
            continue;
        const u32 stage = c.seat[owner.seat].stage;
        if (stage < std::min(c.stages, shm::max_stages) && of(c.stage[stage])) fn(e);
    }
}

bool is_source(const shm::stage_block& s) noexcept { return s.inputs == 0; }
bool is_sink(const shm::stage_block& s) noexcept { return s.outputs == 0; }

}  // namespace

// The header of the first frame may already be overwritten, but the time of the first commit of the source's
// process is still stored.
u64 first_frame_ns(const shm::control_block& c, u64 earliest, u64 latest) noexcept {
    u64 first = latest;
    const auto take = [&](u64 at) {
        if (at >= earliest) first = std::min(first, at);
    };
    for_each_process(c, is_source, [&](const shm::incarnation& e) { take(ring::load(e.first_commit_ns)); });
    for (u32 k = 0; k < std::min(c.links, shm::max_links); ++k) {
        const u32 stage = c.link[k].stage;
        if (stage >= std::min(c.stages, shm::max_stages) || !is_source(c.stage[stage])) continue;
        for (u32 s = 0; s < std::min(c.link[k].slots, shm::max_slots); ++s)
            take(c.frames[k].header[s].meta.born_ns);
    }
    return first;
}

u64 last_delivery_ns(const shm::control_block& c, u64 earliest, u64 latest) noexcept {
    u64 last = 0;
    for_each_process(c, is_sink, [&](const shm::incarnation& e) {
        const u64 at = ring::load(e.last_commit_ns);
        if (at >= earliest && at <= latest) last = std::max(last, at);
    });
    return last != 0 ? last : latest;
}

}  // namespace carousel::supervisor
