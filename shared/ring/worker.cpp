#include "ring/worker.hpp"

#include <algorithm>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "ring/header_check.hpp"
#include "ring/stream_end.hpp"
#include "shm/block_guard.hpp"
#include "shm/doorbell.hpp"
#include "shm/sink.hpp"

namespace carousel::ring {

worker::worker(shm::control_block& c, u32 seat, u32 entry, u32 epoch) noexcept
    : control_(&c), seat_(seat), entry_(entry), epoch_(epoch) {
    CAROUSEL_ASSERT(seat < shm::max_seats && entry < shm::max_incarnations);
    stage_index_ = std::min(c.seat[seat].stage, shm::max_stages - 1);
    stage_ = &c.stage[stage_index_];
    first_job_ = c.seat[seat].first_job;
    jobs_ = c.seat[seat].jobs;
    CAROUSEL_ASSERT(first_job_ < shm::max_jobs && jobs_ <= shm::max_jobs - first_job_ &&
                    stage_->inputs <= shm::max_inputs);
    inputs_ = std::min(stage_->inputs, shm::max_inputs);
    for (u32 i = 0; i < inputs_; ++i) {
        input_[i].emplace(c, stage_->input_link[i]);
        group_[i] = std::min(stage_->input_group[i], shm::max_groups - 1);
    }
    source_ = stage_->source == shm::none ? shm::none : std::min(stage_->source, shm::max_sources - 1);
    outputs_ = std::min(stage_->outputs, shm::max_outputs);
    for (u32 k = 0; k < outputs_; ++k) output_[k].emplace(c, stage_->output_link[k]);
    has_state_ = outputs_ > 0 && (stage_->flags & shm::stage_flag::state) != 0;
    in_order_ = shm::is_sink(*stage_) && stage_->seats == 1;
    sampled_frame_.fill(shm::no_sampled_frame);
}

bool worker::revoked() const noexcept {
    const u64 raw = load(control_->seat[seat_].current);
    return intact(raw) && seat_word::of(raw).epoch != epoch_;
}

bool worker::is_mine(const lease_word& w) const noexcept {
    if (w.job < first_job_ || w.job >= first_job_ + jobs_) return false;
    const job_word j = job_word::of(load(control_->job[w.job]));
    return j.epoch == epoch_ && (j.version & version_mask) == w.version;
}

void worker::take_attempts(job& j, const lease_word& w) noexcept {
    j.alone = j.alone || w.alone();
    if (stage_->max_attempts > 0 && w.failures() >= stage_->max_attempts) {
        j.tombstone_stage = stage_index_;
        j.tombstone_reason = static_cast<u32>(exit_code::stage_failed);
    }
}

outcome worker::begin(job& out, u32 in_flight) noexcept {
    const shm::block_open open;
    for (;;) {
        job j;
        if (const outcome o = choose(j, in_flight); o != outcome::ok) return o;
        if (!inputs_are_whole(j)) return outcome::empty;
        // Searches for an idle job word with this incarnation's epoch. IDLE contains the only epoch that may
        // open the word, so a successor's CAS cannot interfere with this one.
        u64 raw = 0;
        job_word jw;
        for (u32 k = first_job_; k < first_job_ + jobs_; ++k) {
            raw = load(control_->job[k]);
            jw = job_word::of(raw);
            if (jw.state == job_state::idle && jw.epoch == epoch_) {
                j.index = k;
                break;
            }
        }
        if (j.index == shm::none) return revoked() ? outcome::revoked : outcome::own_work;
        j.version = jw.version;
        j.claimed_ns = now_ns();
        control_->job_info[j.index].process_since_ns.store(0, std::memory_order_relaxed);
        control_->job_info[j.index].submitted_since_ns.store(0, std::memory_order_relaxed);
        // The order is release: a process that reads this sequence also reads that the job word is no longer
        // COMMITTED for its previous frame (revoke() relies on this).
        control_->job_info[j.index].ring_sequence.store(j.ring_sequence, std::memory_order_release);
        crash_here(crash_point::job_chosen);
        if (!cas(control_->job[j.index], raw, jw.with(job_state::open).pack())) {
            const job_word now = job_word::of(load(control_->job[j.index]));
            if (now.state == job_state::idle && now.epoch == epoch_)
                continue;  // repaired meanwhile: choose again
            return now.state == job_state::damaged ? outcome::empty : outcome::revoked;
        }
        crash_here(crash_point::job_opened);
        if (!lease_all(j)) {
            if (revoked()) return outcome::revoked;
            continue;  // another instance was faster, so this instance chooses again
        }
        const outcome o = fill(j);
        if (o != outcome::ok) return o;
        if (has_state_) newest_state_ = j.output[outputs_ - 1];
        out = j;
        return o;
    }
}

outcome worker::peek(u32 in_flight) noexcept {
    u64 ring_sequence = 0;
    return peek(in_flight, ring_sequence);
}

outcome worker::peek(u32 in_flight, u64& ring_sequence) noexcept {
    job j;
    const outcome o = choose(j, in_flight);
    ring_sequence = j.ring_sequence;
    return o;
}

// A number that is done is WAIT at its next lap (S6). A late read can only lower the result, never raise it.
u64 worker::done_below() const noexcept {
    const shm::source_block& q = control_->source[std::min(source_, shm::max_sources - 1)];
    const u64 n = output_[0]->window(), tail = output_[0]->tail();
    for (u64 k = tail; k < tail + n; ++k) {
        const lease_word w = lease_word::of(load(q.sequence_lease[k % n]));
        if (w.generation != ((lap_of(q, k, n) + 1) & generation_mask) || w.state == lease_state::damaged)
            return k;
    }
    return tail + n;
}

outcome worker::await_due() noexcept { return check_end(load(control_->end)); }

outcome worker::check_end(u64 end) noexcept {
    if (end == shm::no_number)
        return outcome::empty;  // the word is damaged: nothing begins until it is
                                // repaired
    if (end == end_stopping) {
        // This thread is not in the middle of a lease, so the supervisor may compute END from the words.
        const shm::block_open open;
        control_->entry[entry_].end_acknowledged.store(shm::acknowledged_mark, std::memory_order_release);
        return outcome::stopping;
    }
    bool through = end != end_unknown;
    for (u32 k = 0; k < outputs_; ++k) through = through && output_[k]->tail() >= end;
    return through ? outcome::closed : outcome::ok;
}

// Returns how far beyond an output's tail a frame may begin: the ring's window, or the smaller distance that
// this process has chosen.
u64 worker::within(const link_ref& output) const noexcept { return std::min(output.window(), reach_); }

// Returns the first output that has no room for that frame. Every output is checked. If only one output were
// checked, a fork could fill one ring with frames for which the other ring has no slot, and the join
// downstream would wait for a frame that no process can make.
const link_ref* worker::without_room(u64 ring_sequence) const noexcept {
    for (u32 k = 0; k < outputs_; ++k)
        if (ring_sequence >= output_[k]->tail() + within(*output_[k]) || !output_[k]->has_free_slot())
            return &*output_[k];
    return nullptr;
}

outcome worker::choose(job& j, u32 in_flight) noexcept {
    blocking_link_ = shm::none;
    const outcome o = source_ != shm::none ? choose_ring_sequence(j, in_flight) : choose_inputs(j, in_flight);
    return o == outcome::ok && has_state_ ? find_previous(j) : o;
}

// The state before frame n is the one that this process has filled last, or it is READY. Otherwise a
// predecessor still holds an earlier frame, or a word is damaged, and nothing begins: so frames begin in
// order. While n is not READY, the slot of n - 1 is not freed (link_ref::free_below). Only the first frame of
// the block may have no state before it.
outcome worker::find_previous(job& j) noexcept {
    if (newest_state_ && newest_state_.ring_sequence + 1 == j.ring_sequence) {
        j.previous = newest_state_;
        j.previous_epoch = epoch_;
        return outcome::ok;
    }
    const link_ref& states = *output_[outputs_ - 1];
    bool damaged = false;
    for (u32 k = 0; k < states.slots(); ++k) {
        damaged = damaged || !intact(load(states.block().slot[k]));
        const slot_ref s = states.ready_slot(k);
        damaged = damaged || (s && s.ring_sequence == shm::no_number);
        if (!s || s.ring_sequence + 1 != j.ring_sequence) continue;
        j.previous = s;
        j.previous_epoch = states.header(k).epoch;
        return outcome::ok;
    }
#ifdef CAROUSEL_BUG_STATE_SKIPPED
    return outcome::ok;  // seeded bug: a frame that overtakes those of a predecessor begins with zeros
#endif
    return damaged || j.ring_sequence != control_->first_ring_sequence ? outcome::empty : outcome::ok;
}

// A word of a source stands for the number n in [T, T+N) that maps to the word, where T is the tail of the
// source's first output. The number n is available when the word is WAIT at exactly the lap of n.
outcome worker::choose_ring_sequence(job& j, u32 in_flight) noexcept {
    shm::source_block& q = control_->source[std::min(source_, shm::max_sources - 1)];
    const u64 end = load(control_->end);
    if (const outcome o = check_end(end); o != outcome::ok) return o;
    const u64 t = output_[0]->tail();
    const u64 n = output_[0]->window();
    const u64 last = t + within(*output_[0]);
    for (u64 k = t; k < last && k < end; ++k) {
        const u64 raw = load(q.sequence_lease[k % n]);
        const lease_word w = lease_word::of(raw);
        if (w.state != lease_state::wait || w.generation != lap_of(q, k, n)) continue;
        if (w.alone() && in_flight > 0) return outcome::own_work;
        if (const link_ref* full = without_room(k)) return no_room(*full, k);
        j.ring_sequence = k;
        j.sequence_index = static_cast<u32>(k % n);
        j.sequence_lease = raw;
        take_attempts(j, w);
        return outcome::ok;
    }
    // No number below END is left: the source waits for the ring whose tail has not reached END.
    for (u32 k = 1; k < outputs_ && t >= end; ++k)
        if (output_[k]->tail() < end) return no_room(*output_[k], last);
    return no_room(*output_[0], last);
}

outcome worker::choose_inputs(job& j, u32 in_flight) noexcept {
    ready_map ready[shm::max_inputs];
    for (u32 i = 0; i < inputs_; ++i) input_[i]->read_ready(ready[i]);
    let_partial_frames_pass(*stage_, input_, ready);
    const u64 end = load(control_->end);
    const u64 t = ready[0].tail;
    if (end == shm::no_number) return outcome::empty;
    if (end != end_unknown && end != end_stopping) {
        bool through = true;
        for (u32 i = 0; i < inputs_; ++i) through = through && ready[i].tail >= end;
        if (through) return outcome::closed;
    }
    outcome none = outcome::empty;  // the result if every frame in the ring is taken; changed to own_work if
                                    // this stage still holds the oldest of these frames
    for (u32 k = 0; k < ready[0].window; ++k) {
        const slot_ref& first = ready[0].at[k];
        if (t + k >= end) return outcome::empty;  // a frame of another source beyond END: no stage begins it
        // frames are taken in order, and the next frame is not in the ring yet
        if (!first) return no_frame(*input_[0]);
        u64 raw = 0;
        const lease_word w = input_[0]->lease(first, group_[0], raw);
        if (w.state == lease_state::leased && in_order_ && !is_mine(w)) return outcome::empty;
        if (w.state == lease_state::damaged && in_order_) return outcome::empty;  // it may be leased
        if (k == 0 && w.state == lease_state::leased) none = outcome::own_work;
        if (w.state != lease_state::wait) continue;
        j.ring_sequence = t + k;
        j.inputs = inputs_;
        j.input[0] = first;
        j.input_lease[0] = raw;
        take_attempts(j, w);
        // the first input determines the frame; the other inputs must have the same frame
        for (u32 i = 1; i < j.inputs; ++i) {
            if (j.ring_sequence < ready[i].tail || j.ring_sequence - ready[i].tail >= ready[i].window)
                return no_frame(*input_[i]);
            j.input[i] = ready[i].at[j.ring_sequence - ready[i].tail];
            if (!j.input[i]) return no_frame(*input_[i]);
            const lease_word other = input_[i]->lease(j.input[i], group_[i], j.input_lease[i]);
            if (other.state != lease_state::wait) return outcome::empty;
            take_attempts(j, other);
        }
        if (j.alone && in_flight > 0) return outcome::own_work;
        if (const link_ref* full = without_room(j.ring_sequence)) return no_room(*full, j.ring_sequence);
        return outcome::ok;
    }
    return none == outcome::empty ? no_frame(*input_[0]) : none;
}

outcome worker::no_frame(const link_ref& input) noexcept {
    blocking_link_ = input.index();
    return outcome::empty;
}

// Determines what blocks `ring_sequence`: the oldest frame of the ring is either READY and waits for its
// readers, or still in progress in this stage. Used only for accounting, because the tail may have moved in
// the meantime.
outcome worker::no_room(const link_ref& output, u64 ring_sequence) noexcept {
    blocking_link_ = output.index();
    const u64 oldest = output.tail();
    return oldest < ring_sequence && !output.is_ready(oldest) ? outcome::own_work : outcome::full;
}

bool worker::lease_all(job& j) noexcept {
    const u32 version = static_cast<u32>(j.version & version_mask);
    if (j.sequence_index != shm::none) {
        lease_word w = lease_word::of(j.sequence_lease);
        const u64 leased = lease_word{w.generation, j.index, version, w.attempts, lease_state::leased}.pack();
        shm::source_block& q = control_->source[std::min(source_, shm::max_sources - 1)];
#ifndef CAROUSEL_BUG_NUMBER_BY_STORE
        if (!cas(q.sequence_lease[j.sequence_index], j.sequence_lease, leased)) return abandon(j, 0);
#else
        q.sequence_lease[j.sequence_index].store(leased);  // seeded bug: another instance may be first
#endif
        crash_here(crash_point::sequence_leased);
        j.sequence_lease = leased;
        return true;
    }
    for (u32 i = 0; i < j.inputs; ++i) {
        const lease_word w = lease_word::of(j.input_lease[i]).seen_at(j.input[i].word.generation);
        const u64 leased = lease_word{w.generation, j.index, version, w.attempts, lease_state::leased}.pack();
#ifndef CAROUSEL_BUG_INPUT_BY_STORE
        if (!cas(input_[i]->block().group[j.input[i].index][group_[i]], j.input_lease[i], leased))
            return abandon(j, i);
#else
        // seeded bug: another instance may be first
        input_[i]->block().group[j.input[i].index][group_[i]].store(leased);
#endif
        crash_here(crash_point::input_leased);
        j.input_lease[i] = leased;
    }
    return true;
}

// Gives back the leased words and the job word. Always returns false, so that lease_all() can return this
// result.
bool worker::abandon(job& j, u32 leased) noexcept {
    for (u32 i = 0; i < leased; ++i) {
#ifndef CAROUSEL_BUG_ABANDON_FORGETS
        const lease_word w = lease_word::of(j.input_lease[i]);
#else
        lease_word w = lease_word::of(j.input_lease[i]);
        w.attempts = 0;  // seeded bug: the frame may kill its stage again and again
#endif
        cas_after_repair(input_[i]->block().group[j.input[i].index][group_[i]], j.input_lease[i],
                         lease_word{w.generation, 0, 0, w.attempts, lease_state::wait}.pack());
        input_[i]->ring();
    }
    const job_word open{j.version, epoch_, job_state::open};
    cas_after_repair(control_->job[j.index], open.pack(),
                     job_word{j.version + 1, epoch_, job_state::idle}.pack());
    return false;
}

// The checks of the window at the time of the lease guarantee that a slot becomes free at each output; until
// then the job stays OPEN, a state without a deadline. Outputs are filled one after the other: a crash in
// between leaves FILL at some outputs, and R4 checks all of them.
outcome worker::fill(job& j) noexcept {
    for (u32 k = 0; k < outputs_; ++k) {
        link_ref& out = *output_[k];
        while (!(j.output[k] = out.claim(j.index, j.version))) {
            const u32 seen = shm::ticket(stage_->doorbell);
            out.sweep();
            if (!await_repair(control_->job[j.index]) ||
                job_word::of(load(control_->job[j.index])) != job_word{j.version, epoch_, job_state::open})
                return outcome::revoked;
            if (out.has_free_slot()) continue;
            const u64 began = now_ns();
            shm::wait(stage_->doorbell, seen, shm::max_sleep_ns);
            stage_->counters.wait_output_ns.fetch_add(now_ns() - began, std::memory_order_relaxed);
        }
        crash_here(crash_point::slot_filled);
        // The slot's event word is cleared: tags wrap after 2^28 versions, and a slot may have been unused
        // for that long, so the word could contain a tag that equals this job's tag, and a process could take
        // the job for complete before the job is complete.
        out.block().event_tag[j.output[k].index].store(0, std::memory_order_relaxed);
    }
    if (!write_header(j)) return outcome::revoked;
    crash_here(crash_point::header_written);
    return outcome::ok;
}

void worker::start_clock(const job& j) noexcept {
    const shm::block_open open;
    control_->job_info[j.index].process_since_ns.store(now_ns(), std::memory_order_release);
}

bool worker::submit(job& j) noexcept {
    const shm::block_open words;
    if (!inputs_are_whole(j)) return false;
    j.submitted_ns = now_ns();
    seal_headers(j);
    control_->job_info[j.index].submitted_since_ns.store(j.submitted_ns, std::memory_order_release);
    const job_word open{j.version, epoch_, job_state::open};
    if (!cas_after_repair(control_->job[j.index], open.pack(), open.with(job_state::submitted).pack()))
        return false;
    crash_here(crash_point::job_submitted);
    for (u32 k = 0; k < outputs_; ++k) output_[k]->ring();
    return true;
}

bool worker::commit(job& j) noexcept {
    const shm::block_open open;
    const job_word submitted{j.version, epoch_, job_state::submitted};
#ifdef CAROUSEL_BUG_COMMIT_UNCHECKED
    // Seeded bug: a revoked owner still commits.
    control_->job[j.index].store(submitted.with(job_state::committed).pack(), std::memory_order_release);
    return true;
#else
    if (cas_after_repair(control_->job[j.index], submitted.pack(),
                         submitted.with(job_state::committed).pack())) {
        crash_here(crash_point::job_committed);
        return true;
    }
    // After a failed CAS the word is read again: COMMITTED with this incarnation's epoch and version means
    // that a consumer has helped; any other value means that this incarnation is revoked.
    if (job_word::of(load(control_->job[j.index])) == submitted.with(job_state::committed)) {
        stage_->counters.helped.fetch_add(1, std::memory_order_relaxed);
        return true;
    }
    stage_->counters.revoked_commits.fetch_add(1, std::memory_order_relaxed);
    return false;
#endif
}

bool worker::complete(job& j) noexcept {
    const shm::block_open open;
    for (u32 k = 0; k < outputs_; ++k) {
        link_ref& out = *output_[k];
        out.block().committed_ns[j.output[k].index].store(now_ns(), std::memory_order_relaxed);
        (void)await_repair(out.block().slot[j.output[k].index]);
        if (out.mark_ready(j.output[k].index, j.index, j.version))
            out.block().committed.fetch_add(1, std::memory_order_relaxed);
        crash_here(crash_point::slot_ready);
        out.ring();
    }
    if (j.sequence_index != shm::none) {
        const lease_word w = lease_word::of(j.sequence_lease);
        const lease_word next{static_cast<u32>((w.generation + 1) & generation_mask), 0, 0, 0,
                              lease_state::wait};
        cas_after_repair(control_->source[source_].sequence_lease[j.sequence_index], j.sequence_lease,
                         next.pack());
        crash_here(crash_point::number_done);
    }
    for (u32 i = 0; i < j.inputs; ++i) {
        const lease_word w = lease_word::of(j.input_lease[i]);
        cas_after_repair(input_[i]->block().group[j.input[i].index][group_[i]], j.input_lease[i],
                         lease_word{w.generation, w.job, w.version, w.attempts, lease_state::done}.pack());
        crash_here(crash_point::input_done);
    }
    const job_word committed{j.version, epoch_, job_state::committed};
    const bool ours = cas_after_repair(control_->job[j.index], committed.pack(),
                                       job_word{j.version + 1, epoch_, job_state::idle}.pack());
    crash_here(crash_point::job_idle);
    for (u32 i = 0; i < j.inputs; ++i)
        if (!input_[i]->sweep()) input_[i]->ring();
    // No stage need read the states, so this one frees them. Few slots in use stay in the device's cache.
    if (has_state_) (void)output_[outputs_ - 1]->sweep();
    return ours;
}

// The job stays OPEN until END is known, because the claim is valid only as long as the job is OPEN.
outcome worker::end_stream(const job& j) noexcept {
    if (!intact(load(control_->job[j.index]))) return outcome::empty;
    if (job_word::of(load(control_->job[j.index])) != job_word{j.version, epoch_, job_state::open})
        return outcome::revoked;
    if (load(control_->end) <= j.ring_sequence)
        return outcome::ok;  // unknown and STOPPING are above every number
    claim_end(*control_, source_, j.ring_sequence, j.index, j.version);
    return outcome::empty;
}

// The job word comes last, as in complete(), so that no word is tagged with the old version after IDLE.
bool worker::give_back(const job& j) noexcept {
    const shm::block_open words;
    for (u32 k = 0; k < outputs_; ++k)
        cas_after_repair(output_[k]->block().slot[j.output[k].index], j.output[k].word.pack(),
                         j.output[k].word.freed().pack());
    const lease_word w = lease_word::of(j.sequence_lease);
    cas_after_repair(control_->source[source_].sequence_lease[j.sequence_index], j.sequence_lease,
                     lease_word{w.generation, 0, 0, w.attempts, lease_state::wait}.pack());
    const job_word open{j.version, epoch_, job_state::open};
    const bool ours = cas_after_repair(control_->job[j.index], open.pack(),
                                       job_word{j.version + 1, epoch_, job_state::idle}.pack());
    for (u32 k = 0; k < outputs_; ++k) output_[k]->ring();
    return ours;
}

}  // namespace carousel::ring
