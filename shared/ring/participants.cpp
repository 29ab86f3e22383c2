#include "ring/participants.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "shm/process_id.hpp"

namespace carousel::ring {

bool reusable(const shm::control_block& c, u32 entry) noexcept {
    const entry_word w = entry_word::of(load(c.entry[entry].identity));
    if (w.state == entry_state::unused) return true;
    if (w.state != entry_state::fenced) return false;
    const shm::seat_block& seat = c.seat[std::min(w.seat, shm::max_seats - 1)];
    for (u32 j = seat.first_job; j < std::min(seat.first_job + seat.jobs, shm::max_jobs); ++j)
        if (job_word::of(load(c.job[j])).epoch == w.epoch) return false;
    return true;
}

incarnation_id appoint(shm::control_block& c, u32 seat) noexcept {
    CAROUSEL_ASSERT(seat < c.seats);
    for (u32 k = 0; k < shm::max_incarnations; ++k) {
        shm::incarnation& e = c.entry[k];
        const u64 before = load(e.identity);
        if (!reusable(c, k)) continue;
        const u64 raw = load(c.seat[seat].current);
        const u32 epoch = static_cast<u32>((seat_word::of(raw).epoch + 1) & epoch_mask);
        // Nobody looks at the entry until its word names it, so its other fields may be written before.
        e.start_time.store(0, std::memory_order_relaxed);
        e.heartbeat_ns.store(0, std::memory_order_relaxed);
        e.commits.store(0, std::memory_order_relaxed);
        e.end_acknowledged.store(0, std::memory_order_relaxed);
        e.exit_note.store(0, std::memory_order_relaxed);
        e.events_published.store(0, std::memory_order_relaxed);
        e.live_since_ns.store(0, std::memory_order_relaxed);
        e.cpu_ns.store(0, std::memory_order_relaxed);
        std::memset(c.event_handle[k], 0, sizeof c.event_handle[k]);
        if (!cas(e.identity, before, entry_word{0, epoch, seat, entry_state::starting}.pack())) continue;
        crash_here(crash_point::entry_prepared);
        if (!cas(c.seat[seat].current, raw, seat_word{epoch, k}.pack())) {  // two supervisors can't be; a lock forbids it
            mark_fenced(c, k);
            return {};
        }
        crash_here(crash_point::entry_appointed);
        return {seat, k, epoch};
    }
    return {};
}

bool withdraw(shm::control_block& c, u32 entry) noexcept {
    const u64 raw = load(c.entry[entry].identity);
    const entry_word w = entry_word::of(raw);
    return w.state == entry_state::starting && w.pid == 0 && cas(c.entry[entry].identity, raw, w.with(entry_state::fenced).pack());
}

void doom(shm::control_block& c, u32 entry) noexcept {
    for (;;) {
        const u64 raw = load(c.entry[entry].identity);
        const entry_word w = entry_word::of(raw);
        if (w.state == entry_state::unused || w.state == entry_state::doomed || w.state == entry_state::fenced) return;
        if (cas(c.entry[entry].identity, raw, w.with(entry_state::doomed).pack())) return;
    }
}

void mark_fenced(shm::control_block& c, u32 entry) noexcept {
    for (;;) {
        const u64 raw = load(c.entry[entry].identity);
        const entry_word w = entry_word::of(raw);
        if (w.state == entry_state::unused || w.state == entry_state::fenced) return;
        if (cas(c.entry[entry].identity, raw, w.with(entry_state::fenced).pack())) return;
    }
}

claim_result claim(shm::control_block& c, const incarnation_id& who) noexcept {
    CAROUSEL_ASSERT(who.entry < shm::max_incarnations);
    shm::incarnation& e = c.entry[who.entry];
    const entry_word expected{0, who.epoch, who.seat, entry_state::starting};
    const entry_word mine{static_cast<u32>(getpid()), who.epoch, who.seat, entry_state::starting};
    if (!cas(e.identity, expected.pack(), mine.pack())) return claim_result::withdrawn;
    e.start_time.store(shm::this_process().start_time, std::memory_order_release);
    e.heartbeat_ns.store(now_ns(), std::memory_order_release);
    return claim_result::ok;
}

bool go_live(shm::control_block& c, const incarnation_id& who) noexcept {
    shm::incarnation& e = c.entry[who.entry];
    e.live_since_ns.store(now_ns(), std::memory_order_release);
    const entry_word mine{static_cast<u32>(getpid()), who.epoch, who.seat, entry_state::starting};
    return cas(e.identity, mine.pack(), mine.with(entry_state::live).pack());
}

}  // namespace carousel::ring
