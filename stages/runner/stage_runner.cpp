#include "stages/runner/stage_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/signal_stack.hpp"
#include "ring/latest.hpp"
#include "session/accounts.hpp"
#include "shm/doorbell.hpp"
#include "shm/sink.hpp"
#include "stages/runner/dead_letters.hpp"
#include "stages/runner/exit_note.hpp"

namespace carousel::stages {
namespace {
using telemetry::wait_reason;

/// Timeout for sampled inputs that are saved with a dead letter.
constexpr u64 dead_letter_timeout_ns = 300 * ns_per_ms;

bool wants_pool(const runtime& r, const stage& s) { return r.finish_threads() != 1 && s.commits_on_host(); }
depth_rule rule_of(const runtime& r, const stage& s) {
    depth_rule rule = r.attached().depth;
    rule.finish_pool = wants_pool(r, s);
    return rule;
}

u32 committer_of(const runtime& r) {
    return telemetry::ledger_committer(r.incarnation().seat, r.incarnation().epoch);
}
[[noreturn]] void end_unsubmitted(const ring::worker& w, const ring::job& j) {
    if (!w.inputs_are_whole(j))
        log::error(
            "frame {}: the header of an input{} has changed under its lease, so the frame's result is "
            "discarded and this process ends",
            j.ring_sequence, j.previous ? ", or of the previous state," : "");
    die(exit_code::revoked);
}

}  // namespace

stage_runner::stage_runner(runtime& r, stage& s)
    : runtime_(&r),
      stage_(&s),
      commits_on_host_(s.commits_on_host()),
      worker_(r.control(), r.incarnation().seat, r.incarnation().entry, r.incarnation().epoch),
      helper_(r.control(), r.context(), r.domain()),
      takeover_pause_(r.incarnation().entry, r.domain()),
      trace_(r.control(), r.incarnation().seat, r.incarnation().epoch),
      profiler_(r.attached().stage),
      finishing_(r.entry().finishing_since_ns),
      outside_(r.entry(), finishing_),
      pause_(r.control(), outside_),
      status_(r.control(), worker_, r.context(), r.input_links(), r.output_links(), r.in_flight()),
      turn_(r.control(), r.attached().depth.token, r.incarnation().seat),
      reach_(r.reaches_peer_memory()),
      depth_(rule_of(r, s), r.in_flight(), worker_.outputs() > 0 ? worker_.output(0).window() : 0),
      poll_ns_(poll_of(r)) {
    if (shm::is_sink(worker_.stage()))
        ledger_ = std::make_unique<telemetry::ledger_writer>(
            telemetry::ledger_path(r.runtime_directory(), r.attached().stage));
    for (u32 k = 0; k < r.in_flight(); ++k) {
        frames_.push_back(std::make_unique<frame_in_work>(r, k));
        frames_.back()->outside = &outside_;
        idle_.push_back(frames_.back().get());
    }
    if (r.sampled_inputs() > 0) sampled_inputs_ = std::make_unique<sampled_inputs>(r);
    canaries_ = std::make_unique<frame_canaries>(r, worker_, frames_, commits_on_host_);
    play_graphs();
    // Threads start here and not in run(), for two reasons: a standby that takes over already has its
    // threads, and a process that cannot start them ends before it reports that it is ready.
    if (wants_pool(r, s)) {
        pool_ = std::make_unique<finish_pool>(
            r.finish_threads(), [this](frame_in_work& f) { wait_for_device(f); },
            [this](frame_in_work& f) {
                const finish_clock::running clock(finishing_);
                finish(f);
            });
        for (const auto& f : frames_) f->pool = pool_.get();
    }
    if (r.states() != nullptr && r.attached().checkpoint_every > 0)
        checkpoints_ = std::make_unique<checkpoint_writer>(r);
    completion_ = std::thread([this] { complete_loop(); });
}

stage_runner::~stage_runner() { join_completion(); }

void stage_runner::join_completion() {
    {
        const std::lock_guard lock(mutex_);
        all_submitted_ = true;
    }
    changed_.notify_all();
    if (completion_.joinable()) completion_.join();
}

bool stage_runner::stand_by() {
    if (!runtime_->stand_by()) return false;
    worker_.set_epoch(runtime_->incarnation().epoch);
    trace_.set_epoch(runtime_->incarnation().epoch);
    takeover_pause_.begin(now_ns());
    helper_.put_off_imports(takeover_pause_);
    return true;
}

u32 stage_runner::in_flight() {
    const std::lock_guard lock(mutex_);
    return static_cast<u32>(frames_.size() - idle_.size());
}

frames_on_device stage_runner::on_device() {
    const std::lock_guard lock(mutex_);
    frames_on_device all{~u64{0}, 0, 0};
    for (const auto& f : frames_) {
        if (std::find(idle_.begin(), idle_.end(), f.get()) != idle_.end()) continue;
        ++all.count;
        all.oldest = std::min(all.oldest, f->job.ring_sequence);
        all.newest = std::max(all.newest, f->job.ring_sequence);
    }
    return all;
}

void stage_runner::run() {
    for (;;) {
        update_depth();
        // read before the poll, so that a change after the poll is not missed
        const u32 seen = shm::ticket(worker_.stage().doorbell);
        frame_in_work* f = nullptr;
        u32 others = 0;
        {
            const std::lock_guard lock(mutex_);
            others = static_cast<u32>(frames_.size() - idle_.size());
            if (!idle_.empty() && others < depth_.now().lanes && !alone_) f = idle_.back();
        }
        ring::outcome got = ring::outcome::own_work;  // no lane is free, or a suspect frame is in flight,
                                                      // which must run alone
        if (sampled_inputs_)
            // sampled frames are copied now, because they may have left their rings by the time at which
            // they are needed
            sampled_inputs_->take(frames_);
        if (f != nullptr && due(seen)) {
            u64 next = 0;
            got = worker_.peek(others, next);
            if (others == 0) write_missing_state();
            if (got == ring::outcome::ok && !ready(next, others)) {
                turn_.on_idle();
                wait_for_change(seen, wait_reason::input, shm::max_sleep_ns);
                continue;
            }
            // A stage takes its turn only when it has a frame to begin.
            if (got == ring::outcome::ok && !turn_.may_begin()) {
                wait_for_change(seen, wait_reason::turn, turn_.patience_ns());
                continue;
            }
            if (got == ring::outcome::ok) got = begin(*f, others);
        } else if (f != nullptr && (got = worker_.await_due()) == ring::outcome::ok) {
            continue;
        }
        if (got == ring::outcome::ok) {
            submit(*f);
            continue;
        }
        turn_.on_idle();
        wait_for_link(false);
        if (got == ring::outcome::revoked) die(exit_code::revoked);
        if (got == ring::outcome::closed && others == 0) break;
        wait_for_change(seen, reason_of(got), shm::max_sleep_ns);
    }
    count_waits();
    crash_here(crash_point::end_seen);
    join_completion();
    write_last_state();
    crash_here(crash_point::work_ended);
}

void stage_runner::write_missing_state() {
    if (!checkpoints_) return;
    guarded("the checkpoint", 0,
            [&] { pause_.write_patiently(0, [&] { checkpoints_->write_missing(states()); }); });
}

// The supervisor replaces a process that dies before the file is complete (run_phase::awaits_states).
void stage_runner::write_last_state() {
    const shm::control_block& c = runtime_->control();
    if (!checkpoints_ || ring::load(c.stop_asked) == 0) return;
    const u64 end = ring::load(c.end);
    guarded("the checkpoint", end, [&] { checkpoints_->write_last(states(), end); });
}

// One block_open scope covers everything from the lease to the stage's own code, because each scope has a
// cost. The newest frames of the sampled inputs are copied before the lease, so that no word is leased during
// these copies.
ring::outcome stage_runner::begin(frame_in_work& f, u32 in_flight) {
    if (sampled_inputs_) {
        sampled_inputs_->take(frames_);
        sampled_inputs_->assign(f, worker_);
    }
    const shm::block_open open;
    show_wait(ring::wait_kind::none, 0);  // done before the lease, because after the lease the worker may
                                          // wait for a slot
    const ring::outcome got = worker_.begin(f.job, in_flight);
    if (got != ring::outcome::ok) return got;
    const u64 claimed = f.job.claimed_ns;
    paced(claimed);
    count_waits();
    {
        const std::lock_guard lock(mutex_);
        idle_.pop_back();
        alone_ = f.job.alone;
        const u64 depth = frames_.size() - idle_.size();
        if (depth == 1) telemetry::begin_busy(runtime_->entry(), now_ns());
        telemetry::raise_to(worker_.stage().counters.in_flight_high_water, depth);
    }
    if (f.job.inputs > 0) {
        const u64 ready =
            worker_.input(0).block().committed_ns[f.job.input[0].index].load(std::memory_order_relaxed);
        if (ready != 0 && ready <= claimed)
            telemetry::add_sample(worker_.stage().counters.handover, claimed - ready);
    }
    if (f.job.tombstone_stage != worker_.stage_index()) start_clocks(f);
    return got;
}

void stage_runner::start_clocks(const frame_in_work& f) {
    const shm::block_open open;
    worker_.start_clock(f.job);
    runtime_->entry().processing_since_ns.store(now_ns(), std::memory_order_release);
}

void stage_runner::submit(frame_in_work& f) {
    const u64 claimed = f.job.claimed_ns;
    f.traced = trace_.on(claimed);
    if (f.traced)
        trace_.claimed(f.job.ring_sequence, static_cast<u8>(f.lane()), claimed, f.job.born_ns,
                       f.job.live_capture_ns());
    const u64 process = f.traced ? now_ns() : 0;
    f.take_carried();
    // This stage saves the abandoned frame before it passes the tombstone on, because after that no process
    // holds the frame's inputs. Saving has separate clocks, so the frame's clocks start after the frame was
    // saved.
    if (f.job.tombstone_stage == worker_.stage_index()) {
        guarded("keeping", f.job.ring_sequence, [&] {
            if (sampled_inputs_) sampled_inputs_->wait_for_copies(f, frames_, dead_letter_timeout_ns);
            save_dead_letter(*runtime_, f);
        });
        start_clocks(f);
    }
    {
        crash_here(crash_point::clock_started);
        const device::profiler_range shown(profiler_, "process", f.job.ring_sequence);
        guarded(
            "process", f.job.ring_sequence, [&] { enqueue_checked(f); }, [&] { return on_device(); });
    }
    shm::block_open_between open;
    runtime_->entry().processing_since_ns.store(0, std::memory_order_release);
    if (f.ended) return open.leave_for([&] { end_stream(f); });
    // Written before the job word becomes SUBMITTED, so that every frame that another process can commit has
    // this trace record.
    if (f.traced)
        trace_.submitted(f.job.ring_sequence, static_cast<u8>(f.lane()), f.job.is_tombstone(), process,
                         now_ns());
    if (!worker_.submit(f.job)) end_unsubmitted(worker_, f.job);
    if (pool_) pool_->submit(f);
    {
        const std::lock_guard lock(mutex_);
        submitted_.push_back(&f);
    }
    turn_.submitted();
    changed_.notify_all();
}

void stage_runner::complete_loop() {
    const signal_stack for_overflows;
    for (;;) {
        frame_in_work* f = nullptr;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return !submitted_.empty() || all_submitted_; });
            if (submitted_.empty()) return;
            f = submitted_.front();
            submitted_.pop_front();
        }
        u64 wait_began = 0;
        if (pool_) {
            pool_->await(*f);
        } else {
            wait_began = await_device(*f);
        }
        // One block_open scope lasts until the frame ends; it is left while the stage's own code or a disk
        // write runs.
        shm::block_open_between open;
        if (!pool_) on_device_done(*f, wait_began);
        commit(*f, open);
        released(*f);
    }
}

// Called for one frame at a time and in order, oldest first; the caller guarantees this.
void stage_runner::wait_for_device(frame_in_work& f) {
    const u64 wait_began = await_device(f);
    const shm::block_open open;
    on_device_done(f, wait_began);
}

/// Returns the time at which the wait began, in ns.
u64 stage_runner::await_device(frame_in_work& f) {
    const device::profiler_range shown(profiler_, "wait for the device", f.job.ring_sequence);
    const u64 wait_began = now_ns();
    {
        // Only the oldest submitted frame has a clock, because later frames wait for it.
        const shm::block_open open;
        runtime_->entry().device_since_ns.store(wait_began, std::memory_order_release);
    }
    guarded(
        "the device's work", f.job.ring_sequence,
        [&] {
            // No other process helps a sink or a stage with canaries or a state, so the process's own thread
            // must react quickly. The frames of a stage with state run one after the other on the device, so
            // there the sleep until the device's interrupt would add to each of them.
            const bool low_latency = poll_ns_ > poll_ns;
            const bool unhelped = shm::is_sink(worker_.stage()) || runtime_->plants_canaries();
            const bool quick = worker_.has_state() || (low_latency && unhelped);
            while (quick && now_ns() - wait_began < poll_ns_ && !f.event->done()) {
            }
            f.event->wait();
        },
        [&] { return on_device(); });
    return wait_began;
}

void stage_runner::on_device_done(frame_in_work& f, u64 wait_began) {
    measure(f, wait_began);
    runtime_->entry().device_since_ns.store(0, std::memory_order_release);
    turn_.complete();
    crash_here(crash_point::work_complete);
    canaries_->check(f);
    f.complete_ns = f.traced ? now_ns() : 0;
}

// Runs on any thread of the pool, for several frames concurrently; if there is no pool, on the completion
// thread.
void stage_runner::finish(frame_in_work& f) {
    f.hash.reset();
    if (!commits_on_host_ || f.is_hidden_from_stage()) return;
    const device::profiler_range shown(profiler_, "finish", f.job.ring_sequence);
    host_work("finish", f, [&] { stage_->finish(f); });
    guarded(
        "the check after finish()", f.job.ring_sequence, [&] { canaries_->check_after_finish(f); },
        [&] { return on_device(); });
    f.wait_for_link(false);
}

// Without a pool, finish() is also called here and shares one deadline with the commit. With a pool, finish()
// and commit have separate deadlines, and no deadline runs for a frame that waits for its turn after a slow
// finish().
void stage_runner::commit(frame_in_work& f, shm::block_open_between& open) {
    const finish_clock::running clock(finishing_);
    if (!pool_ && commits_on_host_) open.leave_for([&] { finish(f); });
    if (checkpoints_)
        open.leave_for([&] {
            guarded(
                "the checkpoint", f.job.ring_sequence, [&] { checkpoints_->before_commit(f.job); },
                [&] { return on_device(); });
        });
    if (ledger_) open.leave_for([&] { host_work("the record", f, [&] { record(f); }); });
    crash_here(crash_point::host_work_done);
    if (!worker_.commit(f.job)) {
        log::info("frame {}: the commit was refused, because this process has a successor: exiting",
                  f.job.ring_sequence);
        die(exit_code::revoked);
    }
    if (checkpoints_) {
        checkpoints_->committed(f.job);
        open.leave_for([&] { host_work("the checkpoint", f, [&] { checkpoints_->write_awaited(f.job); }); });
    }
    // Done before the job word advances: as long as the word is COMMITTED, the supervisor knows that this
    // mark may be missing.
    if (ledger_)
        open.leave_for([&] {
            host_work("the mark", f, [&] {
                ledger_->mark_committed(f.job.ring_sequence, f.for_ledger(), f.job.is_tombstone(),
                                        committer_of(*runtime_));
            });
        });
    const u64 committed = now_ns();
    session::count_commit(worker_, runtime_->entry(), f.job, committed);
    status_.report(f.job, f.lane());
    telemetry::count_busy(runtime_->entry(), worker_.stage().counters, committed, false);
    const bool owned = worker_.complete(f.job);
    if (f.traced)
        trace_.committed(f.job.ring_sequence, static_cast<u8>(f.lane()), f.complete_ns, committed, now_ns());
    if (!owned) die(exit_code::revoked);
    // After READY: a link lets the sending host release the frame here, and a rebuild keeps what is READY.
    open.leave_for(
        [&] { guarded("committed", f.job.ring_sequence, [&] { stage_->committed(f.job.ring_sequence); }); });
}

void stage_runner::record(const frame_in_work& f) {
    ledger_->record(f.job.ring_sequence, f.for_ledger(), f.job.is_tombstone(), committer_of(*runtime_));
}

// Runs the actions that a stage performs outside the ring. These actions are identified by the frame's
// sequence and can be repeated, so a full disk only delays them.
template <typename F>
void stage_runner::host_work(const char* what, const frame_in_work& f, F&& work) {
    guarded(
        what, f.job.ring_sequence, [&] { pause_.write_patiently(f.job.ring_sequence, work); },
        [&] { return on_device(); });
}

void stage_runner::released(frame_in_work& f) {
    {
        const std::lock_guard lock(mutex_);
        idle_.insert(idle_.begin(), &f);
        alone_ = false;
        if (idle_.size() == frames_.size())
            telemetry::count_busy(runtime_->entry(), worker_.stage().counters, now_ns(), true);
    }
    shm::ring(worker_.stage().doorbell);  // the main thread may be waiting for a lane
}

}  // namespace carousel::stages
