#include "supervisor/processes/absent_readers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/errors.hpp"
#include "ring/recovery.hpp"
#include "ring/words.hpp"

namespace carousel::supervisor {
namespace {

/// According to the supervisor's own copy of the block.
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

/// All of the stage's rings have passed on the frames below.
u64 lowest_tail(const process_table& t, u32 stage) noexcept {
    u64 lowest = ~u64{0};
    for_each_blocking_group(
        t, stage, [&](u32 link, u32) { lowest = std::min(lowest, ring::load(t.c->link[link].tail)); });
    return lowest == ~u64{0} ? 0 : lowest;
}

/// No stage has begun a frame from here on. A process that has read CLOSED lets at most a frame pass that was
/// in a ring at that moment, which is below.
u64 first_not_begun(const process_table& t) noexcept {
    u64 first = t.made->first_sequence;
    for (u32 k = 0; k < std::min(t.made->links, shm::max_links); ++k)
        first = std::max(first, ring::load(t.c->link[k].tail) + t.made->link[k].window);
    return first;
}

}  // namespace

// Without its claims on the disk the stage is waited for: a sender would keep frames, and the report count
// losses, that are none.
void let_frames_pass(process_table& t, u32 stage) {
    const stage_setup& st = t.setup->stages[stage];
    if (st.spec.optional && !t.ledgers.claim_suspended(stage)) {
        if (const std::string why = t.ledgers.suspend_claim(stage, lowest_tail(t, stage)); !why.empty())
            t.say(why);
        if (!t.ledgers.claim_suspended(stage)) return;
    }
    bool closed = false;
    for_each_blocking_group(t, stage,
                            [&](u32 link, u32 group) { closed |= ring::close_group(*t.c, link, group); });
    if (closed && st.spec.skips())
        t.say(fmt::format("nobody is in port {}: frames pass it by", st.spec.name));
}

void await_again(process_table& t, u32 stage) {
    for_each_blocking_group(t, stage, [&](u32 link, u32 group) { ring::open_group(*t.c, link, group); });
    const stage_setup& st = t.setup->stages[stage];
    if (!st.spec.optional || !counts_frames(st) || !t.ledgers.claim_suspended(stage)) return;
    const u64 first = first_not_begun(t);
    if (const std::string why = t.ledgers.resume_claim(stage, first); !why.empty()) t.say(why);
    if (t.ledgers.claim_suspended(stage)) return;
    t.say(
        fmt::format("{} is waited for again: it gets every frame from {} on; of those before, the frames "
                    "that came while it was left out have passed it by",
                    st.spec.name, first));
}

void settle_absent_readers(process_table& t) {
    if (t.paused || !t.memory_there || t.failure) return;
    for (u32 k = 0; k < t.setup->stages.size(); ++k) {
        const stage_spec& spec = t.setup->stages[k].spec;
        if (!spec.skips() && !spec.optional) continue;
        if (is_absent(t, k))
            let_frames_pass(t, k);
        else if (spec.optional && t.ledgers.claim_suspended(k))
            await_again(t, k);
    }
}

}  // namespace carousel::supervisor
