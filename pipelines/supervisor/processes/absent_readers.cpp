#include "supervisor/processes/absent_readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/errors.hpp"
#include "ring/recovery.hpp"
#include "ring/words.hpp"

namespace carousel::supervisor {
namespace {

/// Uses the supervisor's own copy of the block.
template <typename F>
void for_each_blocking_group(const process_table& t, u32 stage, F&& fn) noexcept {
    const shm::stage_block& b = t.made->stage[stage];
    for (u32 i = 0; i < std::min(b.inputs, shm::max_inputs); ++i)
        if (b.input_link[i] < shm::max_links && b.input_group[i] < shm::max_blocking)
            fn(b.input_link[i], b.input_group[i]);
}

bool is_absent(const process_table& t, u32 stage) noexcept {
    const stage_spec& spec = t.setup->stages[stage].spec;
    return std::all_of(t.seats.begin(), t.seats.end(), [&](const auto& s) {
        return s->stage != stage || (spec.skips() ? !s->now : s->machine.state() == seat_state::failed);
    });
}

/// Returns nothing if the word is damaged: either it is repaired before the next tick, or the block is
/// rebuilt.
std::optional<u64> tail_of(const process_table& t, u32 link) noexcept {
    const u64 raw = ring::load(t.c->link[link].tail.raw());
    if (!ring::intact(raw)) return std::nullopt;
    return shm::tail_word::unpack(raw);
}

/// All rings of the stage have passed on the frames below the result. Returns nothing if a tail is damaged.
std::optional<u64> lowest_tail(const process_table& t, u32 stage) noexcept {
    std::optional<u64> lowest = ~u64{0};
    for_each_blocking_group(t, stage, [&](u32 link, u32) {
        const std::optional<u64> tail = tail_of(t, link);
        lowest = lowest && tail ? std::optional(std::min(*lowest, *tail)) : std::nullopt;
    });
    return lowest == ~u64{0} ? 0 : lowest;
}

/// No stage has begun the frame that is returned, or a later one. A process that has read CLOSED lets only
/// frames pass that were in a ring at that moment, which are below the result. Returns nothing if a tail is
/// damaged.
std::optional<u64> first_not_begun(const process_table& t) noexcept {
    u64 first = t.made->first_ring_sequence;
    for (u32 k = 0; k < std::min(t.made->links, shm::max_links); ++k) {
        const std::optional<u64> tail = tail_of(t, k);
        if (!tail) return std::nullopt;
        first = std::max(first, *tail + t.made->link[k].window);
    }
    return first;
}

/// Returns false if the word of a group is damaged, or if another process has just changed it.
bool open_groups(const process_table& t, u32 stage) noexcept {
    bool open = true;
    for_each_blocking_group(t, stage,
                            [&](u32 link, u32 group) { open = ring::open_group(*t.c, link, group) && open; });
    return open;
}

}  // namespace

// The rings wait for the stage until its claims on disk are suspended; otherwise a sender would keep frames
// for it, and the report would count losses that did not occur.
void skip_frames(process_table& t, u32 stage) {
    const stage_setup& st = t.setup->stages[stage];
    if (st.spec.optional && !t.ledgers.claim_suspended(stage)) {
        const std::optional<u64> first = lowest_tail(t, stage);
        if (!first) return;
        if (const std::string why = t.ledgers.suspend_claim(stage, *first); !why.empty()) t.log_line(why);
        if (!t.ledgers.claim_suspended(stage)) return;
    }
    bool closed = false;
    for_each_blocking_group(t, stage,
                            [&](u32 link, u32 group) { closed |= ring::close_group(*t.c, link, group); });
    if (closed && st.spec.skips())
        t.log_line(fmt::format("port {} has no program: frames skip it", st.spec.name));
}

void await_again(process_table& t, u32 stage) {
    if (!open_groups(t, stage)) return;  // frames still bypass the stage: the claim stays suspended
    const stage_setup& st = t.setup->stages[stage];
    if (!st.spec.optional || !counts_frames(st) || !t.ledgers.claim_suspended(stage)) return;
    const std::optional<u64> first = first_not_begun(t);
    if (!first) return;
    if (const std::string why = t.ledgers.resume_claim(stage, *first); !why.empty()) t.log_line(why);
    if (t.ledgers.claim_suspended(stage)) return;
    t.log_line(
        fmt::format("{} is back: it gets every frame from {} on; earlier frames that arrived while it was "
                    "skipped are not repeated",
                    st.spec.name, *first));
}

void settle_absent_readers(process_table& t) {
    if (t.paused || !t.memory_there || t.failure) return;
    for (u32 k = 0; k < t.setup->stages.size(); ++k) {
        const stage_spec& spec = t.setup->stages[k].spec;
        if (!spec.skips() && !spec.optional) continue;
        if (is_absent(t, k))
            skip_frames(t, k);
        else
            await_again(t, k);
    }
}

}  // namespace carousel::supervisor
