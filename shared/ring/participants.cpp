#include "ring/participants.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "ring/event_domain.hpp"
#include "shm/block_guard.hpp"
#include "shm/doorbell.hpp"
#include "shm/process_id.hpp"

namespace carousel::ring {

bool reusable(const shm::control_block& c, u32 entry) noexcept {
    const entry_word w = entry_word::of(load(c.entry[entry].identity));
    if (w.state == entry_state::unused) return true;
    if (w.state != entry_state::fenced) return false;
    const shm::seat_block& seat = c.seat[std::min(w.seat, shm::max_seats - 1)];
    for (u32 j = seat.first_job; j < std::min(seat.first_job + seat.jobs, shm::max_jobs); ++j)
        if (job_word::of(load(c.job[j])).epoch == w.epoch) return false;
    for (u32 j = seat.first_job; j < std::min(seat.first_job + seat.jobs, shm::max_jobs); ++j)
        if (!intact(load(c.job[j]))) return false;  // the damaged word may contain the epoch
    return true;
}

namespace {
// No process reads an entry before the entry's identity word is set, so the other fields may be written
// first; the CAS of that word publishes them. If the supervisor dies in between, the entry is still reusable
// and is cleaned again. The previous process is fenced: it writes none of these words any more.
void clean(shm::control_block& c, u32 entry) noexcept {
    shm::incarnation& e = c.entry[entry];
    e.start_time.store(0, std::memory_order_relaxed);
    e.heartbeat_ns.store(0, std::memory_order_relaxed);
    e.commits.store(0, std::memory_order_relaxed);
    e.end_acknowledged.store(0, std::memory_order_relaxed);
    e.exit_note.store(0, std::memory_order_relaxed);
    e.wild_write.store(0, std::memory_order_relaxed);
    e.guard = 0;
    e.events_published.store(0, std::memory_order_relaxed);
    e.live_since_ns.store(0, std::memory_order_relaxed);
    e.cpu_ns.store(0, std::memory_order_relaxed);
    e.first_commit_ns.store(0, std::memory_order_relaxed);
    e.last_commit_ns.store(0, std::memory_order_relaxed);
    e.work_ns.store(0, std::memory_order_relaxed);
    e.depth.store(0, std::memory_order_relaxed);
    // A port never writes this word, and a stage writes it only when it first waits. Until then, a value left
    // by the process of another stage would name a ring of that stage, and would count as damage.
    e.waiting.store(0, std::memory_order_relaxed);
    for (shm::word* since : {&e.busy_since_ns, &e.processing_since_ns, &e.device_since_ns,
                             &e.finishing_since_ns, &e.paused_since_ns, &e.pause})
        // These words are cleared, because a process that was killed at work leaves its clocks running.
        since->store(0, std::memory_order_relaxed);
    std::memset(c.event_handle[entry], 0, sizeof c.event_handle[entry]);
}
}  // namespace

incarnation_id appoint(shm::control_block& c, u32 seat) noexcept {
    CAROUSEL_ASSERT(seat < shm::max_seats);
    for (u32 k = 0; k < shm::max_incarnations; ++k) {
        shm::incarnation& e = c.entry[k];
        const u64 before = load(e.identity);
        if (!reusable(c, k)) continue;
        const u64 raw = load(c.seat[seat].current);
        if (!intact(raw)) return {};  // an unknown epoch has no successor
        const u32 epoch = next_epoch(seat_word::of(raw).epoch);
        clean(c, k);
        if (!cas(e.identity, before, entry_word{0, epoch, seat, entry_state::starting}.pack())) continue;
        crash_here(crash_point::entry_prepared);
        // the run's lock prevents a second supervisor
        if (!cas(c.seat[seat].current, raw, seat_word{epoch, k}.pack())) {
            mark_fenced(c, k);
            return {};
        }
        crash_here(crash_point::entry_appointed);
        return {seat, k, epoch};
    }
    return {};
}

incarnation_id reserve_standby(shm::control_block& c, u32 seat) noexcept {
    CAROUSEL_ASSERT(seat < shm::max_seats);
    for (u32 k = 0; k < shm::max_incarnations; ++k) {
        const u64 before = load(c.entry[k].identity);
        if (!reusable(c, k)) continue;
        clean(c, k);
        if (cas(c.entry[k].identity, before, entry_word{0, 0, seat, entry_state::standby}.pack()))
            return {seat, k, 0};
    }
    return {};
}

// Makes two CASes; the first of them is on the seat's word. In the opposite order a supervisor that dies
// between them leaves an entry with an epoch that the next supervisor would also give to another entry, and
// the events of two entries with the same epoch would be confused. In the order used here such a death leaves
// the seat with an epoch that no process has. The standby keeps waiting and owns no word; the supervisor that
// takes the run over raises the epoch again and ends the standby.
incarnation_id promote(shm::control_block& c, u32 seat, u32 entry) noexcept {
    CAROUSEL_ASSERT(seat < shm::max_seats && entry < shm::max_incarnations);
    shm::incarnation& e = c.entry[entry];
    const u64 raw_entry = load(e.identity), raw_seat = load(c.seat[seat].current);
    const entry_word w = entry_word::of(raw_entry);
    if (w.state != entry_state::standby || w.pid == 0 || w.seat != seat || !intact(raw_seat)) return {};
    const u32 epoch = next_epoch(seat_word::of(raw_seat).epoch);
    e.live_since_ns.store(now_ns(), std::memory_order_relaxed);
    // the run's lock prevents a second supervisor
    if (!cas(c.seat[seat].current, raw_seat, seat_word{epoch, entry}.pack())) return {};
    crash_here(crash_point::seat_named);
    if (!cas(e.identity, raw_entry, entry_word{w.pid, epoch, seat, entry_state::live}.pack())) return {};
    return {seat, entry, epoch};
}

void wake(shm::control_block& c, u32 seat) noexcept {
    shm::ring(c.seat[seat].bell);
    shm::ring(c.stage[std::min(c.seat[seat].stage, shm::max_stages - 1)].doorbell);
}

bool withdraw(shm::control_block& c, u32 entry) noexcept {
    const u64 raw = load(c.entry[entry].identity);
    const entry_word w = entry_word::of(raw);
    const bool waits = w.state == entry_state::starting || w.state == entry_state::standby;
    return waits && w.pid == 0 && cas(c.entry[entry].identity, raw, w.with(entry_state::fenced).pack());
}

void doom(shm::control_block& c, u32 entry) noexcept {
    const shm::block_open open;
    for (;;) {
        const u64 raw = load(c.entry[entry].identity);
        const entry_word w = entry_word::of(raw);
        if (w.state == entry_state::unused || w.state == entry_state::doomed ||
            w.state == entry_state::fenced || w.state == entry_state::damaged)
            return;
        if (cas(c.entry[entry].identity, raw, w.with(entry_state::doomed).pack())) return;
    }
}

void discard(shm::control_block& c, u32 entry) noexcept {
    const u64 raw = load(c.entry[entry].identity);
    cas(c.entry[entry].identity, raw, entry_word{}.pack());
}

void doom_again(shm::control_block& c, u32 entry) noexcept {
    const u64 raw = load(c.entry[entry].identity);
    const entry_word w = entry_word::of(raw);
    if (w.state == entry_state::fenced) cas(c.entry[entry].identity, raw, w.with(entry_state::doomed).pack());
}

void mark_fenced(shm::control_block& c, u32 entry) noexcept {
    for (;;) {
        const u64 raw = load(c.entry[entry].identity);
        const entry_word w = entry_word::of(raw);
        if (w.state == entry_state::unused || w.state == entry_state::fenced ||
            w.state == entry_state::damaged)
            return;
        if (cas(c.entry[entry].identity, raw, w.with(entry_state::fenced).pack())) return;
    }
}

namespace {
claim_result claim_as(shm::control_block& c, const incarnation_id& id, entry_state state,
                      const shm::process_id& as) noexcept {
    CAROUSEL_ASSERT(id.entry < shm::max_incarnations);
    shm::incarnation& e = c.entry[id.entry];
    const shm::block_open open;
    const entry_word expected{0, id.epoch, id.seat, state};
    const entry_word mine{static_cast<u32>(as.pid), id.epoch, id.seat, state};
#ifndef CAROUSEL_BUG_ENTRY_BY_STORE
    if (!cas(e.identity, expected.pack(), mine.pack())) return claim_result::withdrawn;
#else
    // seeded bug: the entry may be withdrawn meanwhile
    if (load(e.identity) != expected.pack()) return claim_result::withdrawn;
    e.identity.store(mine.pack());
#endif
    e.start_time.store(as.start_time, std::memory_order_release);
    e.heartbeat_ns.store(now_ns(), std::memory_order_release);
    return claim_result::ok;
}
}  // namespace

claim_result claim(shm::control_block& c, const incarnation_id& id, const shm::process_id& as) noexcept {
    return claim_as(c, id, entry_state::starting, as);
}
claim_result claim_standby(shm::control_block& c, const incarnation_id& id) noexcept {
    return claim_as(c, id, entry_state::standby, shm::this_process());
}

u32 promoted_epoch(const shm::control_block& c, const incarnation_id& id) noexcept {
    const seat_word holder = seat_word::of(load(c.seat[id.seat].current));
    // The word may refer to an earlier use of this entry, so the entry's own word must agree.
    if (holder.entry != id.entry) return 0;
    const entry_word w = entry_word::of(load(c.entry[id.entry].identity));
    const bool mine =
        w.state == entry_state::live && w.epoch == holder.epoch && w.pid == static_cast<u32>(getpid());
    return mine ? w.epoch : 0;
}

// In a joint takeover a process may work before the processes of other seats are DOOMED. These are still
// LIVE, in the old domain.
bool others_come_or_go(const shm::control_block& c, u32 entry, u32 domain) noexcept {
    for (u32 k = 0; k < shm::max_incarnations; ++k) {
        const shm::incarnation& e = c.entry[k];
        const entry_word w = entry_word::of(load(e.identity));
        if (k == entry || w.pid == 0) continue;  // no process has claimed it
        const u32 other = domain_of_events(load(e.events_published));
        switch (w.state) {
            case entry_state::doomed:
            case entry_state::starting:
                return true;
            case entry_state::standby:
                if (load(e.live_since_ns) == 0) return true;
                break;
            case entry_state::live:
                if (seat_word::of(load(c.seat[std::min(w.seat, shm::max_seats - 1)].current)).entry != k ||
                    (domain != 0 && other != 0 && other != domain))
                    return true;
                break;
            case entry_state::unused:
            case entry_state::fenced:
            case entry_state::damaged:
                break;
        }
    }
    return false;
}

bool go_live(shm::control_block& c, const incarnation_id& id, i32 pid) noexcept {
    const shm::block_open open;
    shm::incarnation& e = c.entry[id.entry];
    e.live_since_ns.store(now_ns(), std::memory_order_release);
    const entry_word mine{static_cast<u32>(pid), id.epoch, id.seat, entry_state::starting};
    return cas(e.identity, mine.pack(), mine.with(entry_state::live).pack());
}

bool begin_loading(shm::control_block& c, u32 asset, const incarnation_id& id) noexcept {
    const shm::block_open open;
    const u64 raw = load(c.asset[asset].state);
    return asset_word::of(raw).state == shm::asset_state::empty &&
           cas(c.asset[asset].state, raw, asset_word{shm::asset_state::loading, id.epoch, id.seat}.pack());
}

bool finish_loading(shm::control_block& c, u32 asset, const incarnation_id& id) noexcept {
    const shm::block_open open;
    return cas(c.asset[asset].state, asset_word{shm::asset_state::loading, id.epoch, id.seat}.pack(),
               asset_word{shm::asset_state::ready, id.epoch, id.seat}.pack());
}

bool asset_is_ready(const shm::control_block& c, u32 asset) noexcept {
    return asset_word::of(load(c.asset[asset].state)).state == shm::asset_state::ready;
}

}  // namespace carousel::ring
