#include "ring/latest.hpp"

#include "core/clock.hpp"
#include "ring/header_check.hpp"
#include "shm/block_guard.hpp"

namespace carousel::ring {

latest_reader::latest_reader(shm::control_block& c, u32 link, u32 entry, u64 from) noexcept
    : control_(&c), link_(c, link), next_(from) {
    const shm::block_open open;
    for (;;) {
        // Chooses the place that was taken least often. In a place that a member has just left, the newest
        // frame may be DONE, and a member that joins again would have to wait for the next frame.
        u32 place = shm::none, fewest = 0;
        u64 raw = 0;
        for (u32 g = shm::max_blocking; g < shm::max_groups; ++g) {
            const u64 seen = load(link_.block().group_state[g]);
            const group_word w = group_word::of(seen);
            if (w.state != group_state::absent || (place != shm::none && w.joins >= fewest)) continue;
            place = g, fewest = w.joins, raw = seen;
        }
        if (place == shm::none) return;
        const u64 joined = group_word{entry & 0xFFFFU, fewest + 1, group_state::latest}.pack();
        if (!cas(link_.block().group_state[place], raw, joined)) continue;  // another member was faster
        group_ = place;
        mine_ = joined;
        link_.block().skipped[place].store(0, std::memory_order_relaxed);
        return;
    }
}

latest_reader::~latest_reader() {
    if (!joined()) return;
    const shm::block_open open;
    if (held_) (void)release();
    const group_word w = group_word::of(mine_);
    cas(link_.block().group_state[group_], mine_, group_word{0, w.joins, group_state::absent}.pack());
}

slot_ref latest_reader::acquire(u64 only) noexcept {
    if (!joined() || held_) return {};
    const shm::block_open open;
    for (;;) {
        slot_ref best;
        for (u32 k = 0; k < link_.slots(); ++k) {
            const slot_word w = slot_word::of(load(link_.block().slot[k]));
            if (w.state != slot_state::ready) continue;
            const u64 ring_sequence = link_.header(k).ring_sequence.load(std::memory_order_relaxed);
            if (ring_sequence < next_ || (best && ring_sequence <= best.ring_sequence)) continue;
            if (only != any_ring_sequence && ring_sequence != only) continue;
            u64 raw = 0;
            const slot_ref s{k, w, ring_sequence};
            if (link_.lease(s, group_, raw).state == lease_state::wait) best = s;
        }
        if (!best) return {};
        u64 raw = 0;
        const lease_word w = link_.lease(best, group_, raw);
        if (w.state != lease_state::wait) continue;
        // The start time is stored before the CAS, so that a process that has read the lease also reads the
        // start time of that lease. (It may also read an earlier time of this member, which can only cause a
        // premature revocation.)
        link_.block().lease_since_ns[group_].store(now_ns(), std::memory_order_release);
        lease_ = lease_word{best.word.generation, 0, static_cast<u32>(best.ring_sequence & version_mask), 0,
                            lease_state::leased}
                     .pack();
        if (!cas(link_.block().group[best.index][group_], raw, lease_)) continue;
        held_ = best;
        if (is_sealed(link_.header(best.index), control_->parameters.bytes)) {
            next_ = best.ring_sequence + 1;
            return best;
        }
        (void)release();  // if the header is damaged, no frame is delivered and next_ is unchanged; the
                          // supervisor's audit names the slot
    }
}

bool latest_reader::release() noexcept {
    if (!held_) return false;
    const shm::block_open open;
    const lease_word w = lease_word::of(lease_);
    // The header is checked before the CAS, because after the CAS the slot may contain another frame. All
    // data was read before this check.
    const bool sealed = is_sealed(link_.header(held_.index), control_->parameters.bytes);
    const bool whole = cas(link_.block().group[held_.index][group_], lease_,
                           lease_word{w.generation, w.job, w.version, 0, lease_state::done}.pack());
    held_ = {};
    if (whole) link_.sweep();
    header_changed_ = whole && !sealed;
    return whole && sealed;
}

bool revoke_stale_leases(shm::control_block& c, u32 link, u64 now, const counted_from& from) noexcept {
    const shm::block_open open;
    link_ref l(c, link);
    bool any = false;
    for (u32 g = shm::max_blocking; g < shm::max_groups; ++g) {
        for (u32 k = 0; k < l.slots(); ++k) {
            shm::word& at = l.block().group[k][g];
            const u64 raw = load(at);
            const lease_word w = lease_word::of(raw);
            if (w.state != lease_state::leased) continue;
            u64 since = l.block().lease_since_ns[g].load(std::memory_order_acquire);
            if (from) since = from(since);
            if (now < since + l.block().latest_lease_ns) continue;
            if (cas(at, raw, lease_word{w.generation, 0, 0, 0, lease_state::skipped}.pack())) {
                l.block().skipped[g].fetch_add(1, std::memory_order_relaxed);
                any = true;
            }
        }
    }
    if (any) l.sweep();
    return any;
}

}  // namespace carousel::ring
