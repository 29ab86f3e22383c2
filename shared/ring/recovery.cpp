#include "ring/recovery.hpp"

#include <algorithm>

#include "ring/blame.hpp"
#include "ring/link.hpp"
#include "shm/doorbell.hpp"

namespace carousel::ring {
namespace {

/// Owners change a word only a few times; an owner that never stops changing it is faulty.
constexpr u32 most_moves = 1000;

struct job_range {
    u32 first, last;
};
job_range jobs_of(const shm::control_block& c, u32 seat) noexcept {
    const shm::seat_block& s = c.seat[std::min(seat, shm::max_seats - 1)];
    const u32 first = std::min(s.first_job, shm::max_jobs);
    return {first, std::min(first + s.jobs, shm::max_jobs)};
}

const shm::stage_block& stage_of(const shm::control_block& c, u32 seat) noexcept {
    return c.stage[std::min(c.seat[std::min(seat, shm::max_seats - 1)].stage, shm::max_stages - 1)];
}

/// Calls fn(word, exact value, is_number) for every lease word that the job (index, version) has tagged.
template <typename F>
void for_each_lease(shm::control_block& c, u32 seat, u32 job, u64 version, F&& fn) {
    const shm::stage_block& s = stage_of(c, seat);
    if (s.source != shm::none) {
        shm::source_block& q = c.source[std::min(s.source, shm::max_sources - 1)];
        for (shm::word& at : q.sequence_lease) {
            const u64 raw = load(at);
            if (lease_word::of(raw).tagged(job, version)) fn(at, raw, true);
        }
    }
    for (u32 i = 0; i < std::min(s.inputs, shm::max_inputs); ++i) {
        if (s.input_group[i] >= shm::max_groups || s.input_link[i] >= shm::max_links) continue;
        shm::link_block& l = c.link[s.input_link[i]];
        for (u32 k = 0; k < std::min(l.slots, shm::max_slots); ++k) {
            shm::word& at = l.group[k][s.input_group[i]];
            const u64 raw = load(at);
            if (lease_word::of(raw).tagged(job, version)) fn(at, raw, false);
        }
    }
}

/// Calls fn(word, exact value, slot word, link) for every slot that the job has tagged (FILL or QUARANTINED),
/// at all outputs of its stage.
template <typename F>
void for_each_slot(shm::control_block& c, u32 seat, u32 job, u64 version, F&& fn) {
    const shm::stage_block& s = stage_of(c, seat);
    for (u32 o = 0; o < std::min(s.outputs, shm::max_outputs); ++o) {
        if (s.output_link[o] >= shm::max_links) continue;
        shm::link_block& l = c.link[s.output_link[o]];
        for (u32 k = 0; k < std::min(l.slots, shm::max_slots); ++k) {
            const u64 raw = load(l.slot[k]);
            const slot_word w = slot_word::of(raw);
            if ((w.state == slot_state::fill || w.state == slot_state::quarantined) && w.tagged(job, version))
                fn(l.slot[k], raw, w, l);
        }
    }
}

/// Returns true if a word that a job of the seat may have tagged is damaged: in that case it is not known yet
/// what the jobs hold.
bool any_damaged(const shm::control_block& c, u32 seat) noexcept {
    const shm::stage_block& s = stage_of(c, seat);
    if (s.source != shm::none) {
        const shm::source_block& q = c.source[std::min(s.source, shm::max_sources - 1)];
        // Words beyond the window contain no number in use, and no process would ever repair them.
        const u32 window = c.link[std::min(q.link, shm::max_links - 1)].window;
        for (u32 k = 0; k < std::min(window, shm::max_window); ++k)
            if (!intact(load(q.sequence_lease[k]))) return true;
    }
    for (u32 i = 0; i < std::min(s.inputs, shm::max_inputs); ++i) {
        if (s.input_group[i] >= shm::max_groups || s.input_link[i] >= shm::max_links) continue;
        const shm::link_block& l = c.link[s.input_link[i]];
        for (u32 k = 0; k < std::min(l.slots, shm::max_slots); ++k)
            if (!intact(load(l.group[k][s.input_group[i]]))) return true;
    }
    for (u32 o = 0; o < std::min(s.outputs, shm::max_outputs); ++o) {
        if (s.output_link[o] >= shm::max_links) continue;
        const shm::link_block& l = c.link[s.output_link[o]];
        for (u32 k = 0; k < std::min(l.slots, shm::max_slots); ++k)
            if (!intact(load(l.slot[k]))) return true;
    }
    return false;
}

// Step S6 for a dead owner: its work is complete and committed, only the bookkeeping is missing.
[[maybe_unused]] void finish_committed(shm::control_block& c, u32 seat, u32 job, u64 raw,
                                       u32 successor) noexcept {
    const job_word j = job_word::of(raw);
    for_each_slot(c, seat, job, j.version, [&](shm::word& at, u64 exact, slot_word w, shm::link_block& l) {
        if (w.state == slot_state::fill && cas(at, exact, w.with(slot_state::ready).pack()))
            l.committed.fetch_add(1, std::memory_order_relaxed);
    });
    for_each_lease(c, seat, job, j.version, [](shm::word& at, u64 exact, bool number) {
        const lease_word w = lease_word::of(exact);
        const lease_word next =
            number ? lease_word{static_cast<u32>((w.generation + 1) & generation_mask), 0, 0, 0,
                                lease_state::wait}
                   : lease_word{w.generation, w.job, w.version, w.attempts, lease_state::done};
        cas(at, exact, next.pack());
    });
    cas(c.job[job], raw, job_word{j.version + 1, successor, job_state::idle}.pack());
}

/// True if the incarnation is of a block that a rebuild has replaced: the epochs of a block begin after those
/// of the one before.
bool is_of_earlier_block(const shm::control_block& c, u32 seat, u32 epoch) noexcept {
    const u32 steps = epochs_between(c.seat[std::min(seat, shm::max_seats - 1)].first_epoch, epoch);
    return epoch != 0 && (steps == 0 || steps >= epoch_mask / 2);
}

/// True if another program of an earlier block may still write to buffers of the seat's ring.
/// enter_unfenced() does not know which of these programs holds which buffer, so the last one keeps all of
/// them.
bool shares_quarantine(const shm::control_block& c, u32 seat, u32 dead_epoch) noexcept {
    if (!is_of_earlier_block(c, seat, dead_epoch)) return false;
    return std::any_of(std::begin(c.entry), std::end(c.entry), [&](const shm::incarnation& e) {
        const entry_word w = entry_word::of(load(e.identity));
        return w.state == entry_state::damaged ||
               (w.state == entry_state::doomed && w.seat == seat && w.epoch != dead_epoch &&
                is_of_earlier_block(c, seat, w.epoch));
    });
}

}  // namespace

job_census census(const shm::control_block& c, u32 seat, u32 epoch) noexcept {
    job_census out;
    const job_range r = jobs_of(c, seat);
    for (u32 j = r.first; j < r.last; ++j) {
        const job_word w = job_word::of(load(c.job[j]));
        // the job may have had a frame in flight, so that frame is counted: no other frame is then blamed as
        // the only one in flight
        if (w.state == job_state::damaged) ++out.in_flight;
        if (w.epoch != epoch || static_cast<u8>(w.state) > 4) continue;
        ++out.by_state[static_cast<u8>(w.state)];
        if (w.state == job_state::open || w.state == job_state::submitted || w.state == job_state::aborted)
            ++out.in_flight;
    }
    return out;
}

bool revoke(shm::control_block& c, u32 seat, u32 dead_epoch,
            const std::function<void(u64)>& committed) noexcept {
    const u64 sits = load(c.seat[seat].current);
    const u32 successor = seat_word::of(sits).epoch;
    const job_range r = jobs_of(c, seat);
    bool clean = true;
    // If one of these conditions holds, the seat's word was overwritten, and the revocation could never
    // finish.
    if (successor == dead_epoch || !intact(sits)) return false;
    for (u32 j = r.first; j < r.last; ++j) {
        // Repeats until the word has another epoch or is ABORTED, because its owner may still change it.
        for (u32 tries = 0; tries < most_moves; ++tries) {
            const u64 raw = load(c.job[j]);
            const job_word w = job_word::of(raw);
            if (w.epoch != dead_epoch || w.state == job_state::aborted) break;
            if (w.state == job_state::idle) {
                cas(c.job[j], raw, job_word{w.version, successor, job_state::idle}.pack());
            } else if (w.state == job_state::committed) {
                // The sequence belongs to this word if the word is unchanged after the sequence was read: the
                // owner writes another sequence only after IDLE. If the owner itself has advanced the word,
                // it had made its ledger entry before that. If the sequence, or any word that this job may
                // have tagged, is damaged, the revocation waits for the repair.
                const u64 ring_sequence = load(c.job_info[j].ring_sequence);
                if (ring_sequence == shm::no_number || any_damaged(c, seat)) {
                    clean = false;
                    break;
                }
                if (committed && load(c.job[j]) == raw) committed(ring_sequence);
#ifndef CAROUSEL_BUG_ABORT_COMMITTED
                finish_committed(c, seat, j, raw, successor);
#else
                cas(c.job[j], raw,
                    job_word{w.version, w.epoch, job_state::aborted}
                        .pack());  // seeded bug: aborts a frame that has been committed
#endif
            } else if (w.state == job_state::open || w.state == job_state::submitted) {
#ifndef CAROUSEL_BUG_NO_ABORT
                cas(c.job[j], raw, w.with(job_state::aborted).pack());
#else
                // Seeded bug: requeues the frame without revoking the dead incarnation's right to commit it.
                for_each_lease(c, seat, j, w.version, [](shm::word& at, u64 exact, bool) {
                    const lease_word l = lease_word::of(exact);
                    cas(at, exact, lease_word{l.generation, 0, 0, 0, lease_state::wait}.pack());
                });
                clean = false;
                break;
#endif
            } else {
                clean = false;  // the word is damaged, or has a state that does not exist
                break;
            }
        }
    }
    // Step S6 of the dead incarnation may have set a word to IDLE after the loop had passed it, so the loop
    // checks again.
    for (u32 j = r.first; j < r.last; ++j) {
        const job_word w = job_word::of(load(c.job[j]));
        if (w.epoch == dead_epoch && w.state != job_state::aborted) clean = false;
        if (w.state == job_state::damaged) clean = false;
    }
    return clean;
}

bool requeue(shm::control_block& c, u32 seat, u32 dead_epoch, blame why, u32 in_flight) noexcept {
    const job_range r = jobs_of(c, seat);
    bool nothing = !any_damaged(c, seat);
    for (u32 j = r.first; j < r.last; ++j) {
        const job_word w = job_word::of(load(c.job[j]));
        if (w.epoch != dead_epoch || w.state != job_state::aborted) continue;
        for_each_lease(c, seat, j, w.version, [&](shm::word& at, u64 exact, bool) {
            const lease_word l = lease_word::of(exact);
            u32 attempts = l.attempts;
            if (why == blame::own && in_flight <= 1)
                attempts = (attempts & 8U) | std::min(l.failures() + 1, max_failures);
            if (why == blame::own && in_flight > 1) attempts |= 8U;
            nothing = false;
#ifndef CAROUSEL_BUG_LOSE_LEASE
            cas(at, exact, lease_word{l.generation, 0, 0, attempts, lease_state::wait}.pack());
#else
            cas(at, exact, lease_word{l.generation, 0, 0, attempts, lease_state::done}.pack());  // seeded bug: drops the frame
#endif
        });
        for_each_slot(c, seat, j, w.version, [&](shm::word& at, u64 exact, slot_word s, shm::link_block&) {
            if (s.state != slot_state::fill) return;
            nothing = false;
#ifndef CAROUSEL_BUG_FREE_BEFORE_FENCE
            cas(at, exact, s.with(slot_state::quarantined).pack());
#else
            // seeded bug: a process that is not fenced may still write into the slot
            cas(at, exact, s.freed().pack());
#endif
        });
    }
    ring_neighbours(c, seat);
    return nothing;
}

bool reclaim(shm::control_block& c, u32 seat, u32 dead_epoch) noexcept {
    const u64 sits = load(c.seat[seat].current);
    const seat_word holder = seat_word::of(sits);
    // After a rebuild, a seat may have had no process yet. The words of such a seat have epoch 0, and its
    // first process takes them over.
    const u32 successor = holder.entry == shm::none ? 0 : holder.epoch;
    const job_range r = jobs_of(c, seat);
    if (!intact(sits) || any_damaged(c, seat) || shares_quarantine(c, seat, dead_epoch)) return false;
    for (u32 j = r.first; j < r.last; ++j) {
        const u64 raw = load(c.job[j]);
        const job_word w = job_word::of(raw);
        if (w.epoch != dead_epoch || w.state != job_state::aborted) continue;
        bool tagged = false;
        for_each_slot(c, seat, j, w.version, [&](shm::word& at, u64 exact, slot_word s, shm::link_block&) {
            if (s.state == slot_state::fill || !cas(at, exact, s.freed().pack())) tagged = true;
        });
        for_each_lease(c, seat, j, w.version, [&](shm::word&, u64, bool) { tagged = true; });
        if (!tagged) cas(c.job[j], raw, job_word{w.version + 1, successor, job_state::idle}.pack());
    }
    ring_neighbours(c, seat);
    for (u32 j = r.first; j < r.last; ++j)
        if (const job_word w = job_word::of(load(c.job[j]));
            w.epoch == dead_epoch || w.state == job_state::damaged)
            return false;
    return true;
}

void reset_assets(shm::control_block& c, u32 seat, u32 dead_epoch) noexcept {
    for (u32 k = 0; k < std::min(c.assets, shm::max_assets); ++k) {
        const u64 raw = load(c.asset[k].state);
        if (raw == asset_word{shm::asset_state::loading, dead_epoch, seat}.pack())
            cas(c.asset[k].state, raw, asset_word{}.pack());
    }
}

void ring_neighbours(shm::control_block& c, u32 seat) noexcept {
    const shm::stage_block& s = stage_of(c, seat);
    for (u32 i = 0; i < std::min(s.inputs, shm::max_inputs); ++i)
        if (s.input_link[i] < shm::max_links) link_ref(c, s.input_link[i]).ring();
    for (u32 o = 0; o < std::min(s.outputs, shm::max_outputs); ++o)
        if (s.output_link[o] < shm::max_links) link_ref(c, s.output_link[o]).ring();
}

bool close_group(shm::control_block& c, u32 link, u32 group) noexcept {
    link_ref l(c, link);
    shm::word& at = l.block().group_state[group];
    const u64 raw = load(at);
    group_word w = group_word::of(raw);
    if (w.state == group_state::closed) return false;
    w.state = group_state::closed;
    cas(at, raw, w.pack());
    l.sweep();
    l.ring();
    return true;
}

// A process that has already read CLOSED may still skip the reader for one frame, as if the reader had joined
// after that frame.
bool open_group(shm::control_block& c, u32 link, u32 group) noexcept {
    shm::word& at = c.link[link].group_state[group];
    const u64 raw = load(at);
    group_word w = group_word::of(raw);
    if (w.state != group_state::closed) return w.state == group_state::blocking;
    w.state = group_state::blocking;
    return cas(at, raw, w.pack());
}

void dismiss_latest(shm::control_block& c, u32 entry) noexcept {
    for (u32 k = 0; k < std::min(c.links, shm::max_links); ++k) {
        for (u32 g = shm::max_blocking; g < shm::max_groups; ++g) {
            shm::word& at = c.link[k].group_state[g];
            const u64 raw = load(at);
            const group_word w = group_word::of(raw);
            if (w.state != group_state::latest || w.entry != entry) continue;
            cas(at, raw, group_word{0, w.joins, group_state::absent}.pack());
            for (u32 s = 0; s < std::min(c.link[k].slots, shm::max_slots); ++s) {
                const u64 held = load(c.link[k].group[s][g]);
                const lease_word l = lease_word::of(held);
                if (l.state == lease_state::leased)
                    cas(c.link[k].group[s][g], held,
                        lease_word{l.generation, 0, 0, 0, lease_state::skipped}.pack());
            }
            link_ref(c, k).sweep();
        }
    }
}

void begin_stop(shm::control_block& c) noexcept {
    // This is done once per run, because the sources' acknowledgements count for only one STOPPING. An END
    // that the user gave (--frames) is also replaced by STOPPING; no source leases beyond the given END, so
    // the END that is determined later is not above the given one.
    if (!cas(c.stop_asked, 0, 1)) return;
    // A damaged END is also replaced, because it has only one writer.
    for (u64 raw = load(c.end.raw()); raw != shm::end_word::pack(end_stopping); raw = load(c.end.raw()))
        if (cas(c.end.raw(), raw, shm::end_word::pack(end_stopping))) break;
    for (u32 k = 0; k < std::min(c.stages, shm::max_stages); ++k) shm::ring(c.stage[k].doorbell);
}

std::optional<u64> first_unbegun_by(const shm::control_block& c, u32 source) noexcept {
    const shm::source_block& q = c.source[std::min(source, shm::max_sources - 1)];
    const u64 n = std::clamp(c.link[std::min(q.link, shm::max_links - 1)].window, 1U, shm::max_window);
    const shm::tail_word& tail = c.link[std::min(q.link, shm::max_links - 1)].tail;
    const u64 t = load(tail);
    if (!intact(load(tail.raw()))) return std::nullopt;
    u64 first = std::max(c.first_ring_sequence, t);
    for (u64 number = t; number < t + n; ++number) {
        const lease_word w = lease_word::of(load(q.sequence_lease[number % n]));
        if (w.state == lease_state::damaged) return std::nullopt;
        const bool begun = w.generation != lap_of(q, number, n) || w.state == lease_state::leased;
        if (begun) first = std::max(first, number + 1);
    }
    return first;
}

std::optional<u64> first_unbegun(const shm::control_block& c) noexcept {
    u64 first = c.first_ring_sequence;
    for (u32 k = 0; k < std::min(c.sources, shm::max_sources); ++k) {
        const std::optional<u64> of_source = first_unbegun_by(c, k);
        if (!of_source) return std::nullopt;
        first = std::max(first, *of_source);
    }
    return first;
}

// The tail is read last, so a frame that has left its slot meanwhile is below it.
std::optional<u64> first_not_ready(shm::control_block& c, u32 link) noexcept {
    const link_ref ring(c, link);
    u64 first = 0;
    for (u32 k = 0; k < ring.slots(); ++k) {
        const slot_ref s = ring.ready_slot(k);
        if (slot_word::of(load(ring.block().slot[k])).state == slot_state::damaged) return std::nullopt;
        if (s && s.ring_sequence == shm::no_number) return std::nullopt;
        if (s) first = std::max(first, s.ring_sequence + 1);
    }
    if (!intact(load(ring.block().tail.raw()))) return std::nullopt;
    const u64 tail = ring.tail();
    if (first > tail + ring.window()) return std::nullopt;  // the number in a header is wrong
    return std::max(first, tail);
}

bool try_finish_stop(shm::control_block& c) noexcept {
    const u64 now = load(c.end);
    if (now == end_unknown || now == shm::no_number) return false;
    if (now != end_stopping) return true;
    for (u32 k = 0; k < std::min(c.sources, shm::max_sources); ++k) {
        const shm::source_block& q = c.source[k];
        const shm::stage_block& s = c.stage[std::min(q.stage, shm::max_stages - 1)];
        for (u32 i = s.first_seat; i < std::min(s.first_seat + s.seats, shm::max_seats); ++i) {
            if (!intact(load(c.seat[i].current))) return false;
            const seat_word seat = seat_word::of(load(c.seat[i].current));
            // A predecessor that is doomed but not revoked yet has received no request to stop, and may still
            // lease: it must be revoked first.
            const job_range r = jobs_of(c, i);
            for (u32 j = r.first; j < r.last; ++j) {
                const job_word w = job_word::of(load(c.job[j]));
                if (w.epoch != seat.epoch && w.state != job_state::aborted) return false;
            }
            if (seat.entry >= shm::max_incarnations) continue;
            const shm::incarnation& e = c.entry[seat.entry];
            const entry_word w = entry_word::of(load(e.identity));
            if (w.state == entry_state::damaged) return false;
            const bool acknowledged = load(e.end_acknowledged) == shm::acknowledged_mark;
            if (w.state == entry_state::live && !acknowledged) return false;
        }
    }
    const std::optional<u64> first = first_unbegun(c);
    if (!first || !cas(c.end, end_stopping, *first)) return false;
    for (u32 k = 0; k < std::min(c.stages, shm::max_stages); ++k) shm::ring(c.stage[k].doorbell);
    return true;
}

bool all_delivered(const shm::control_block& c) noexcept {
    const u64 end = load(c.end);
    if (end == end_unknown || end == end_stopping) return false;
    for (u32 k = 0; k < std::min(c.links, shm::max_links); ++k)
        if (load(c.link[k].tail) < end) return false;
    return true;
}

// A crash between two of these words leaves a join's inputs with different counts; the higher count is
// authoritative (take_attempts).
void blame_waiting(shm::control_block& c, u32 stage, u64 ring_sequence, bool single,
                   const std::function<void()>& between) {
    for_each_lease_of(c, stage, ring_sequence, [&](shm::word& at, u64 raw, u32 generation) {
        const lease_word w = lease_word::of(raw).seen_at(generation);
        if (w.state != lease_state::wait) return;
        lease_word next = w;
        next.attempts =
            single ? (w.attempts & 8U) | std::min(w.failures() + 1, max_failures) : w.attempts | 8U;
        if (between) between();
        cas(at, raw, next.pack());
    });
}

}  // namespace carousel::ring
