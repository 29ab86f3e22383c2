#include "ring/stream_end.hpp"

#include <algorithm>

#include "core/crash_point.hpp"
#include "shm/block_guard.hpp"
#include "shm/doorbell.hpp"

namespace carousel::ring {
namespace {

/// Returns true if the job of the claim is still OPEN at that frame, which means that it has not been
/// revoked.
bool is_open(const shm::control_block& c, const end_claim& claim) noexcept {
    const job_word j = job_word::of(load(c.job[std::min(claim.job, shm::max_jobs - 1)]));
    return j.state == job_state::open && (j.version & claim_version_mask) == claim.version;
}

/// Returns true if the claim's job is open and also holds the number that the claim names.
bool stands(const shm::control_block& c, const shm::source_block& q, const end_claim& claim) noexcept {
    if (!is_open(c, claim)) return false;
    const u64 n = std::clamp(c.link[std::min(q.link, shm::max_links - 1)].window, 1U, shm::max_window);
    const lease_word w = lease_word::of(load(q.sequence_lease[claim.ring_sequence % n]));
    return w.generation == lap_of(q, claim.ring_sequence, n) && w.state == lease_state::leased &&
           w.job == claim.job && (w.version & claim_version_mask) == claim.version;
}

/// The stage's word of this slot is SKIPPED, and the slot still contains the frame that it contained when the
/// word was read. No CAS follows that would prove that slot word and header belong together, so both words
/// are checked. The group's word must have the slot's own generation: a word with a newer generation also
/// reads as SKIPPED, but belongs to the next frame in the slot. The slot word, read again after the header,
/// must be unchanged.
bool is_skipped(const link_ref& input, const slot_ref& slot, u32 group) noexcept {
    const lease_word w = lease_word::of(load(input.block().group[slot.index][group]));
    if (w.state != lease_state::skipped || w.generation != slot.word.generation) return false;
    std::atomic_thread_fence(std::memory_order_acquire);
    return load(input.block().slot[slot.index]) == slot.word.pack();
}

/// Returns true if the frame has bypassed the stage at one of its inputs: that input's tail is after the
/// frame, or the word is SKIPPED. A frame that the stage has processed does not match: its words at all
/// inputs are DONE before the tail of any of these inputs passes it.
bool has_passed(const shm::stage_block& stage, const std::optional<link_ref> (&input)[shm::max_inputs],
                const ready_map (&ready)[shm::max_inputs], u64 n) noexcept {
    for (u32 i = 0; i < std::min(stage.inputs, shm::max_inputs); ++i) {
        if (!input[i]) continue;
        if (n < ready[i].tail) return true;
        if (n - ready[i].tail >= ready[i].window) continue;
        const slot_ref& slot = ready[i].at[n - ready[i].tail];
        if (slot && is_skipped(*input[i], slot, std::min(stage.input_group[i], shm::max_groups - 1)))
            return true;
    }
    return false;
}

}  // namespace

void claim_end(shm::control_block& c, u32 source, u64 ring_sequence, u32 job, u64 version) noexcept {
    shm::source_block& q = c.source[std::min(source, shm::max_sources - 1)];
    const u64 mine = end_claim{ring_sequence, job, static_cast<u32>(version & claim_version_mask)}.pack();
    for (u64 there = load(q.ended); there != mine; there = load(q.ended)) {
        const end_claim other = end_claim::of(there);
        if (there != no_claim && other.ring_sequence < ring_sequence && stands(c, q, other)) return;
        const shm::block_open open;
        if (!cas(q.ended, there, mine)) continue;
        crash_here(crash_point::end_claimed);
        return;
    }
}

std::optional<stream_end> claimed_end(const shm::control_block& c) noexcept {
    std::optional<stream_end> lowest;
    for (u32 k = 0; k < std::min(c.sources, shm::max_sources); ++k) {
        const shm::source_block& q = c.source[k];
        const u64 raw = load(q.ended);
        if (raw == no_claim || !intact(raw) ||
            (c.stage[std::min(q.stage, shm::max_stages - 1)].flags & shm::stage_flag::ends) == 0)
            continue;
        const end_claim claim = end_claim::of(raw);
        if (!stands(c, q, claim)) continue;
        if (!lowest || claim.ring_sequence < lowest->ring_sequence) lowest = {k, claim.ring_sequence};
    }
    return lowest;
}

bool lower_end(shm::control_block& c, u64 ring_sequence) noexcept {
    // END is unknown or STOPPING: both are above every number
    static_assert(end_stopping > (u64{1} << 40U) && end_unknown > end_stopping);
    // A damaged END reads as a number above all others, so it is overwritten here, by its only writer.
    for (u64 raw = load(c.end.raw()); shm::end_word::unpack(raw) > ring_sequence; raw = load(c.end.raw())) {
        if (!cas(c.end.raw(), raw, shm::end_word::pack(ring_sequence))) continue;
        for (u32 k = 0; k < std::min(c.stages, shm::max_stages); ++k) shm::ring(c.stage[k].doorbell);
        return true;
    }
    return false;
}

void let_partial_frames_pass(const shm::stage_block& stage, std::optional<link_ref> (&input)[shm::max_inputs],
                             const ready_map (&ready)[shm::max_inputs]) noexcept {
    const bool was_closed = (stage.flags & (shm::stage_flag::skips | shm::stage_flag::optional)) != 0;
    if (stage.inputs < 2 || !was_closed) return;
    for (u32 i = 0; i < std::min(stage.inputs, shm::max_inputs); ++i) {
        const u32 group = std::min(stage.input_group[i], shm::max_groups - 1);
        if (!input[i]) continue;  // the number of inputs is damaged
        bool changed = false;
        for (u32 k = 0; k < ready[i].window; ++k) {
            const slot_ref& slot = ready[i].at[k];
            u64 raw = 0;
            if (!slot || input[i]->lease(slot, group, raw).state != lease_state::wait ||
                !has_passed(stage, input, ready, slot.ring_sequence))
                continue;
            const shm::block_open open;
            if (!cas(input[i]->block().group[slot.index][group], raw,
                     lease_word{slot.word.generation, 0, 0, 0, lease_state::skipped}.pack()))
                continue;
            input[i]->block().skipped[group].fetch_add(1, std::memory_order_relaxed);
            changed = true;
        }
        if (changed) input[i]->sweep();
    }
}

}  // namespace carousel::ring
