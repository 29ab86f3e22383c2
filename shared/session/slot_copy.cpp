#include "session/slot_copy.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "ring/header_check.hpp"
#include "ring/words.hpp"

namespace carousel::session {

slot_stamp stamp_slot(const shm::control_block& c, u32 link, u32 slot) {
    slot_stamp s;
    if (link >= std::min(c.links, shm::max_links) || slot >= std::min(c.link[link].slots, shm::max_slots))
        return s;
    s.word = ring::load(c.link[link].slot[slot]);
    switch (ring::slot_word::of(s.word).state) {
        case ring::slot_state::free:
            s.content = slot_content::free;
            break;
        case ring::slot_state::fill:
            s.content = slot_content::filling;
            return s;
        case ring::slot_state::ready:
            s.content = slot_content::frame;
            break;
        case ring::slot_state::quarantined:
            s.content = slot_content::quarantined;
            return s;
        default:
            return s;
    }
    const shm::frame_header& h = c.frames[link].header[slot];
    s.facts.ring_sequence = h.ring_sequence.load(std::memory_order_relaxed);
    if (s.content == slot_content::free) return s;
    // The header is trusted only if the word is unchanged afterwards, which the caller checks.
    if (!ring::is_sealed(h, c.parameters.bytes)) {
        s.content = slot_content::damaged;
        return s;
    }
    ring::copy_facts(h, c.parameters.bytes, s.facts);
    s.facts.ring_sequence = h.ring_sequence.load(std::memory_order_relaxed);
    s.epoch = h.epoch;
    if (h.meta.is_tombstone()) s.content = slot_content::tombstone;
    return s;
}

// The fence keeps the reads of header and payload before the second read of the word.
bool is_unchanged(const shm::control_block& c, u32 link, u32 slot, const slot_stamp& before) noexcept {
    std::atomic_thread_fence(std::memory_order_acquire);
    return ring::load(c.link[link].slot[slot]) == before.word;
}

slot_copier::slot_copier(const shm::control_block& c, run::mapped_ring from, device::context& on)
    : control_(&c),
      from_(std::move(from)),
      memory_(on.map(from_.memory, device::access::read)),
      torn_(on.allocate_host(sizeof(u32))),
      event_(on.make_event(&event_word_)) {}

slot_copy_result slot_copier::copy(device::queue& q, u32 slot, const slot_stamp& before, std::byte* to,
                                   u64 offset, u64 bytes) {
    if (before.content != slot_content::frame)
        return is_unchanged(*control_, from_.link, slot, before) ? slot_copy_result::no_frame
                                                                 : slot_copy_result::reused;
    const std::byte* const at = memory_->slot(slot, from_.slot_bytes);
    const device::status_word expected{before.facts.ring_sequence, before.epoch,
                                       static_cast<u32>(device::status_state::ready)};
    const auto* status = reinterpret_cast<const device::status_word*>(at);
    auto* torn = reinterpret_cast<u32*>(torn_->data());
    volatile const u32* mismatches = reinterpret_cast<volatile u32*>(torn_->host_data());
    *reinterpret_cast<volatile u32*>(torn_->host_data()) = 0;
    q.check_status(status, expected, torn);
    q.copy(to, at + offset, bytes);
    q.check_status(status, expected, torn);
    event_->record(q, before.facts.ring_sequence);
    event_->wait();
    if (!is_unchanged(*control_, from_.link, slot, before)) return slot_copy_result::reused;
    return *mismatches == 0 ? slot_copy_result::whole : slot_copy_result::torn;
}

}  // namespace carousel::session
