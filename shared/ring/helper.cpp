#include "ring/helper.hpp"

#include <algorithm>
#include <cstring>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/log.hpp"
#include "ring/event_domain.hpp"
#include "shm/block_guard.hpp"

namespace carousel::ring {

device::imported_event* helper::event_of(u32 link, u32 seat, u32 epoch, u32 slot) noexcept try {
    shm::link_block& first = control_->link[link];
    for (u32 k = 0; k < shm::max_incarnations; ++k) {
        shm::incarnation& entry = control_->entry[k];
        const entry_word w = entry_word::of(load(entry.identity));
        if (w.state == entry_state::unused || w.epoch != epoch || w.seat != seat) continue;
        const u64 published = load(entry.events_published);
        if (published == 0) return nullptr;
        // The entry keeps this value until it is used again. By then no job word has this epoch, so the
        // helper's CAS fails.
        if (domain_of_events(published) != domain_) return nullptr;
        import& known = imports_[k];
        const u64 identity = u64{epoch} << 12U | seat;
        if (known.identity != identity) known = {identity, {}, {}};
        if (known.events.empty()) {
            known.events.resize(std::min(first.slots, shm::max_slots));
            known.tried.resize(known.events.size());
        }
        if (slot >= known.events.size()) return nullptr;
        if (!known.tried[slot]) {
            if (pause_ != nullptr && pause_->is_on(*control_)) return nullptr;
            known.tried[slot] = true;
            device::event::handle handle;
            std::memcpy(handle.data(), control_->event_handle[k][slot], handle.size());
            known.events[slot] = context_->import_event(static_cast<device::device_kind>(entry.device),
                                                        handle, &first.event_tag[slot]);
        }
        return known.events[slot].get();
    }
    return nullptr;
} catch (const std::exception& e) {
    log::debug("importing an event of seat {}: {}: only the event's owner can commit the event's frames",
               seat, e.what());
    return nullptr;
}

// A job has one event: the event of the slot that the job has filled at the first output of its stage. A
// helper at another output finds that slot by the slot's tag (job, version). The owner has written the tag
// before SUBMITTED, and the slot is returned only after COMMITTED or ABORTED. So if the helper's CAS from
// exactly the J value that it has read succeeds, the slot had this tag the whole time.
u32 helper::event_slot(const shm::stage_block& owner, const link_ref& link, u32 slot,
                       const slot_word& s) noexcept {
    const u32 first = owner.output_link[0];
    if (first == link.index()) return slot;
    if (first >= shm::max_links) return shm::none;
    for (u32 k = 0; k < std::min(control_->link[first].slots, shm::max_slots); ++k) {
        const slot_word w = slot_word::of(load(control_->link[first].slot[k]));
        if (w.state == slot_state::fill && w.job == s.job && w.version == s.version) return k;
    }
    return shm::none;
}

u32 helper::help(link_ref& link) noexcept {
    u32 made = 0;
    for (u32 k = 0; k < link.slots(); ++k) {
        const slot_word s = slot_word::of(load(link.block().slot[k]));
        if (s.state != slot_state::fill || s.job >= shm::max_jobs) continue;
        const u64 raw = load(control_->job[s.job]);
        const job_word j = job_word::of(raw);
        if ((j.version & version_mask) != s.version) continue;
        // the frame's owner, or another helper, died or is delayed between commit and READY
        if (j.state == job_state::committed) {
            const shm::block_open open;
            if (link.mark_ready(k, s.job, j.version)) {
                ++made, link.block().committed.fetch_add(1, std::memory_order_relaxed);
                link.ring();
            }
            continue;
        }
        const u32 seat = control_->job_info[s.job].seat;
        if (seat >= shm::max_seats) continue;
        const shm::stage_block& owner =
            control_->stage[std::min(control_->seat[seat].stage, shm::max_stages - 1)];
        if ((owner.flags & shm::stage_flag::owner_commits) != 0) continue;
#ifndef CAROUSEL_BUG_HELP_OPEN
        if (j.state != job_state::submitted) continue;
#else
        // seeded bug: an unrecorded event reads as complete
        if (j.state != job_state::submitted && j.state != job_state::open) continue;
#endif
        const u32 at = event_slot(owner, link, k, s);
        if (at == shm::none) continue;
        device::imported_event* event = event_of(owner.output_link[0], seat, j.epoch, at);
#ifndef CAROUSEL_BUG_HELP_OPEN
        if (event == nullptr || !event->done(event_tag(s.job, j.version, j.epoch))) continue;
#else
        if (event == nullptr) continue;
#endif
        // The block is opened only after the event's query, because the query calls the driver.
        const shm::block_open open;
        if (!cas(control_->job[s.job], raw, j.with(job_state::committed).pack())) continue;
        crash_here(crash_point::help_committed);
        link.block().committed_ns[k].store(now_ns(), std::memory_order_relaxed);
        if (link.mark_ready(k, s.job, j.version))
            link.block().committed.fetch_add(1, std::memory_order_relaxed);
        crash_here(crash_point::help_ready);
        link.ring();  // in the same scope
        ++made;
        ++commits_;
    }
    return made;
}

}  // namespace carousel::ring
