#include "ring/partial_frames.hpp"

namespace carousel::ring {
namespace {

/// The stage's word of this slot is SKIPPED, and the slot still contains the frame with which it was read. No
/// CAS follows that would prove the pair of slot word and header, so both words are checked: the group's word
/// must have the slot's own generation, because a newer one, which reads as SKIPPED, belongs to the next
/// frame in the slot; and the slot word, read again after the header, must be unchanged.
bool is_skipped(const link_ref& input, const slot_ref& slot, u32 group) noexcept {
    const lease_word w = lease_word::of(load(input.block().group[slot.index][group]));
    if (w.state != lease_state::skipped || w.generation != slot.word.generation) return false;
    std::atomic_thread_fence(std::memory_order_acquire);
    return load(input.block().slot[slot.index]) == slot.word.pack();
}

/// Returns true if the frame has bypassed the stage at one of its inputs: that input's tail is after the
/// frame, or the word is SKIPPED. A frame that the stage has processed does not match: its inputs are DONE
/// before any of their tails is after it.
bool has_passed(const shm::stage_block& stage, const std::optional<link_ref> (&input)[shm::max_inputs],
                const ready_map (&ready)[shm::max_inputs], u64 n) noexcept {
    for (u32 i = 0; i < stage.inputs; ++i) {
        if (n < ready[i].tail) return true;
        if (n - ready[i].tail >= ready[i].window) continue;
        const slot_ref& slot = ready[i].at[n - ready[i].tail];
        if (slot && is_skipped(*input[i], slot, stage.input_group[i])) return true;
    }
    return false;
}

}  // namespace

void let_partial_frames_pass(const shm::stage_block& stage, std::optional<link_ref> (&input)[shm::max_inputs],
                             const ready_map (&ready)[shm::max_inputs]) noexcept {
    const bool was_closed = (stage.flags & (shm::stage_flag::skips | shm::stage_flag::optional)) != 0;
    if (stage.inputs < 2 || !was_closed) return;
    for (u32 i = 0; i < stage.inputs; ++i) {
        bool changed = false;
        for (u32 k = 0; k < ready[i].window; ++k) {
            const slot_ref& slot = ready[i].at[k];
            u64 raw = 0;
            if (!slot || input[i]->lease(slot, stage.input_group[i], raw).state != lease_state::wait ||
                !has_passed(stage, input, ready, slot.ring_sequence))
                continue;
            const shm::block_open open;
            if (!cas(input[i]->block().group[slot.index][stage.input_group[i]], raw,
                     lease_word{slot.word.generation, 0, 0, 0, lease_state::skipped}.pack()))
                continue;
            input[i]->block().skipped[stage.input_group[i]].fetch_add(1, std::memory_order_relaxed);
            changed = true;
        }
        if (changed) input[i]->sweep();
    }
}

}  // namespace carousel::ring
