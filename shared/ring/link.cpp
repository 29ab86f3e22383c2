#include "ring/link.hpp"

#include <algorithm>
#include <bit>

#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "shm/block_guard.hpp"
#include "shm/doorbell.hpp"

namespace carousel::ring {

// Counts are read once and clamped, because a faulty process may overwrite the block while this process runs.
link_ref::link_ref(shm::control_block& c, u32 index) noexcept
    : control_(&c),
      link_(&c.link[std::min(index, shm::max_links - 1)]),
      headers_(c.frames[std::min(index, shm::max_links - 1)].header),
      index_(index),
      slots_(std::min(link_->slots, shm::max_slots)),
      window_(std::clamp(link_->window, 1U, shm::max_window)),
      blocking_(std::min(link_->blocking, shm::max_blocking)) {
    CAROUSEL_ASSERT(index < shm::max_links);
    static_assert(shm::max_stages <= 32);
    every_.fill(1);
    for (u32 k = 0; k < std::min(c.stages, shm::max_stages); ++k) {
        const shm::stage_block& s = c.stage[k];
        bool here = false;
        for (u32 i = 0; i < std::min(s.outputs, shm::max_outputs); ++i) {
            if (s.output_link[i] != index) continue;
            here = true;
            keeps_last_ = (s.flags & shm::stage_flag::state) != 0 && i + 1 == s.outputs;
        }
        for (u32 i = 0; i < std::min(s.inputs, shm::max_inputs); ++i) {
            if (s.input_link[i] != index) continue;
            here = true;
            if (s.input_group[i] < shm::max_blocking) every_[s.input_group[i]] = std::max(s.every, 1U);
        }
        for (u32 i = 0; i < std::min(s.sampled_inputs, shm::max_sampled_inputs); ++i)
            here |= s.sampled_link[i] == index;
        if (here) bells_ |= 1U << k;
    }
}

// The header belongs to this generation only while the word is unchanged. Between the two reads another
// process may free the slot, and a source may fill it with a later frame. With the old word and the new
// number that frame would look DONE in all groups, and sweep() would move the tail over it: a lost frame. The
// number is stored after the slot was claimed, by a release, and is read by an acquire, so a process that has
// read the new number reads the new word afterwards.
slot_ref link_ref::ready_slot(u32 slot) const noexcept {
    const u64 raw = load(link_->slot[slot]);
    const slot_word w = slot_word::of(raw);
    if (w.state != slot_state::ready) return {};
    const u64 ring_sequence = headers_[slot].ring_sequence.load(std::memory_order_acquire);
#ifndef CAROUSEL_BUG_NUMBER_UNCHECKED
    if (load(link_->slot[slot]) != raw) return {};
#endif  // seeded bug: the number may be that of a later frame
    return {slot, w, ring_sequence};
}

void link_ref::read_ready(ready_map& out) const noexcept {
    out.tail = tail();
    out.window = window_;
    for (u32 k = 0; k < window_; ++k) out.at[k].index = shm::none;
    for (u32 k = 0; k < slots_; ++k) {
        const slot_ref s = ready_slot(k);
        if (!s || s.ring_sequence < out.tail || s.ring_sequence - out.tail >= window_) continue;
        out.at[s.ring_sequence - out.tail] = s;
    }
}

lease_word link_ref::lease(const slot_ref& slot, u32 group, u64& raw) const noexcept {
    raw = load(link_->group[slot.index][group]);
    const lease_word w = lease_word::of(raw).seen_at(slot.word.generation);
    if (w.state != lease_state::wait || takes(group, slot.ring_sequence)) return w;
    return {w.generation, 0, 0, 0, lease_state::skipped};
}

bool link_ref::has_free_slot() const noexcept {
    for (u32 k = 0; k < slots_; ++k)
        if (slot_word::of(load(link_->slot[k])).state == slot_state::free) return true;
    return false;
}

bool link_ref::is_ready(u64 ring_sequence) const noexcept {
    for (u32 k = 0; k < slots_; ++k)
        if (const slot_ref s = ready_slot(k); s && s.ring_sequence == ring_sequence) return true;
    return false;
}

slot_ref link_ref::claim(u32 job, u64 version) noexcept {
    const shm::block_open open;
    for (u32 k = 0; k < slots_; ++k) {
        const u64 raw = load(link_->slot[k]);
        const slot_word w = slot_word::of(raw);
        if (w.state != slot_state::free) continue;
        const slot_word filled{w.generation, job, static_cast<u32>(version & version_mask), slot_state::fill};
#ifndef CAROUSEL_BUG_SLOT_BY_STORE
        if (cas(link_->slot[k], raw, filled.pack())) return {k, filled, 0};
#else
        link_->slot[k].store(filled.pack(),
                             std::memory_order_release);  // seeded bug: another job may be first
        return {k, filled, 0};
#endif
    }
    return {};
}

bool link_ref::mark_ready(u32 slot, u32 job, u64 version) noexcept {
    if (slot >= slots_) return false;
    const u64 raw = load(link_->slot[slot]);
    const slot_word w = slot_word::of(raw);
    if (w.state != slot_state::fill || !w.tagged(job, version)) return false;
    const shm::block_open open;
    return cas(link_->slot[slot], raw, w.with(slot_state::ready).pack());
}

// A group is closed if its optional stage has failed for good, or if no program uses its port. The ring
// waits neither for a closed group nor for a group that does not take the frame: the next sweep, by any
// process, changes the group's words from WAIT to SKIPPED.
bool link_ref::done_in_all_groups(const slot_ref& slot) noexcept {
    for (u32 g = 0; g < blocking_; ++g) {
        const u64 raw = load(link_->group[slot.index][g]);
        const lease_word w = lease_word::of(raw).seen_at(slot.word.generation);
        if (w.state == lease_state::done || w.state == lease_state::skipped) continue;
        if (w.state != lease_state::wait ||
            (takes(g, slot.ring_sequence) &&
             group_word::of(load(link_->group_state[g])).state != group_state::closed))
            return false;
        const shm::block_open open;
        if (!cas(link_->group[slot.index][g], raw,
                 lease_word{slot.word.generation, 0, 0, 0, lease_state::skipped}.pack()))
            return false;
        link_->skipped[g].fetch_add(1, std::memory_order_relaxed);
    }
    return true;
}

// Changes no word: below the tail every word is DONE or SKIPPED, because sweep() moves the tail only after
// done_in_all_groups() has returned true. A word that is WAIT belongs to a frame at or beyond the tail,
// whatever the frame's header contains.
bool link_ref::has_passed_all_groups(u32 slot, u32 generation) const noexcept {
    for (u32 g = 0; g < blocking_; ++g) {
        const lease_state s = lease_word::of(load(link_->group[slot][g])).seen_at(generation).state;
        if (s != lease_state::done && s != lease_state::skipped) return false;
    }
    return true;
}

// Every latest column is closed, whether or not it has a member: a viewer that joins at this moment either
// finds SKIPPED or already has its lease.
bool link_ref::close_latest(u32 slot, u32 generation) noexcept {
    for (u32 g = shm::max_blocking; g < shm::max_groups; ++g) {
        shm::word& at = link_->group[slot][g];
        const u64 raw = load(at);
        const lease_word w = lease_word::of(raw).seen_at(generation);
        // A lease pins the slot until the lease is released or revoked; a damaged word may be a lease.
        if (w.state == lease_state::leased || w.state == lease_state::damaged) return false;
        if (w.state != lease_state::wait) continue;
        if (!cas(at, raw, lease_word{generation, 0, 0, 0, lease_state::skipped}.pack())) return false;
        if (group_word::of(load(link_->group_state[g])).state == group_state::latest)
            link_->skipped[g].fetch_add(1, std::memory_order_relaxed);
    }
    return true;
}

// Returns the slot of the newest frame, if that frame is the last one below the tail and the link has latest
// members; if not, returns none. An older frame that is still READY does not count, even if the newest frame
// has already been freed: a member that has read the newest frame does not take an older one.
u32 link_ref::newest_for_latest(u64 tail) const noexcept {
    bool any_latest = false;
    for (u32 g = shm::max_blocking; g < shm::max_groups && !any_latest; ++g)
        any_latest = group_word::of(load(link_->group_state[g])).state == group_state::latest;
    u32 last = shm::none;
    for (u32 k = 0; any_latest && k < slots_; ++k) {
        if (slot_word::of(load(link_->slot[k])).state != slot_state::ready) continue;
        const u64 ring_sequence = headers_[k].ring_sequence.load(std::memory_order_relaxed);
        if (ring_sequence >= tail) return shm::none;
        if (ring_sequence + 1 == tail) last = k;
    }
    return last;
}

// Returns true if at least one member of a `latest` group still has the word WAIT for the frame. A member
// that has joined with a higher number (`from` of a latest_reader) does not take the frame, which is then
// freed with the next frame. If what this function has read is outdated, the slot is kept until the next
// sweep, or freed although a member waits for it; S7 permits both.
bool link_ref::is_awaited(u32 slot) const noexcept {
    const u32 generation = slot_word::of(load(link_->slot[slot])).generation;
    for (u32 g = shm::max_blocking; g < shm::max_groups; ++g)
        if (group_word::of(load(link_->group_state[g])).state == group_state::latest &&
            lease_word::of(load(link_->group[slot][g])).seen_at(generation).state == lease_state::wait)
            return true;
    return false;
}

// The latest columns are closed (b) before the slot is freed (c). All groups have passed a slot that is below
// the tail. This function checks the groups itself, so that a wrong ring_sequence in a header neither frees
// nor closes a frame that a group still needs.
bool link_ref::free_below(u64 tail, u32 slot, shm::block_open_late& open) noexcept {
    const u64 raw = load(link_->slot[slot]);
    const slot_word w = slot_word::of(raw);
    if (w.state != slot_state::ready) return false;
    const u64 ring_sequence = headers_[slot].ring_sequence.load(std::memory_order_relaxed);
    if (ring_sequence >= tail || !has_passed_all_groups(slot, w.generation)) return false;
#ifndef CAROUSEL_BUG_STATE_FREED
    if (keeps_last_ && ring_sequence + 1 == tail) return false;  // the next state is computed from it
#endif  // seeded bug: the state that the next frame needs is overwritten
    open.now();
    if (!close_latest(slot, w.generation)) return false;
    crash_here(crash_point::latest_closed);
    const bool freed = cas(link_->slot[slot], raw, w.freed().pack());
    crash_here(crash_point::slot_freed);
    return freed;
}

// The block is opened only at the first write, because most calls find nothing to change, and an idle thread
// calls this function continuously.
bool link_ref::sweep() noexcept {
    shm::block_open_late open;
    bool changed = false;
    ready_map ready;
    read_ready(ready);
    u64 t = ready.tail;
    // The tail is moved (a) before slots are freed (c): in the other order a crash between the two would lose
    // the tail.
    for (u32 k = 0; k < window_; ++k) {
        const slot_ref& s = ready.at[k];
        if (!s || !done_in_all_groups(s)) break;
        open.now();
        if (!cas(link_->tail, t, t + 1)) break;
#ifndef CAROUSEL_BUG_TAIL_TWICE
        ++t;
#else
        t = load(link_->tail);
        if (cas(link_->tail, t, t + 1)) ++t;  // seeded bug: skips a frame that no group has read
#endif
        changed = true;
        crash_here(crash_point::tail_moved);
    }
    t = tail();
    const u32 newest = newest_for_latest(t);
    for (u32 k = 0; k < slots_; ++k)
        if (k != newest) changed |= free_below(t, k, open);
    // The newest frame's slot is checked after the other slots: it is kept only if another slot is FREE, and
    // one of the other slots may just have been freed.
    if (newest != shm::none && !(is_awaited(newest) && has_free_slot()))
        changed |= free_below(t, newest, open);
    if (changed) ring();
    return changed;
}

void link_ref::ring() noexcept {
    const shm::block_open open;
    for (u32 left = bells_; left != 0; left &= left - 1)
        shm::ring(control_->stage[std::countr_zero(left)].doorbell);
}

}  // namespace carousel::ring
