// Enqueues the following for one frame, in this order: canaries that are not planted yet; the first check of
// the inputs, together with status WRITING; the stage's own work; the last check, together with status READY;
// the event. The runner itself makes two of these launches, and a third one if it plants canaries.

#include "stages/runner/stage_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/log.hpp"
#include "stages/runner/fault_injection.hpp"
#include "stages/sdk/process_call.hpp"

namespace carousel::stages {
namespace {

// The runner's depth: the thread that detects a frame's completion measures the work per frame, and the
// thread that begins frames chooses how many are in flight (depth_governor.hpp).

constexpr u64 update_interval_ns = 250'000'000;

// Returns the work per frame of the slowest process in the stage's seats, because several instances of a
// stage share its frames. 0: unknown.
u64 work_of(const shm::control_block& c, const shm::stage_block& s) {
    u64 work = 0;
    for (u32 k = 0; k < s.seats && s.first_seat + k < shm::max_seats; ++k) {
        const u32 entry = ring::seat_word::of(ring::load(c.seat[s.first_seat + k].current)).entry;
        if (entry < shm::max_incarnations)
            work = std::max(work, c.entry[entry].work_ns.load(std::memory_order_relaxed));
    }
    return work;
}

}  // namespace

// Work that is the same for every frame runs as one graph per lane, including the checks of the status words.
// A graph contains neither the copies from and to rings on another GPU nor the tear that a test requests.
void stage_runner::play_graphs() {
    if (!runtime_->plays_graphs() || runtime_->reaches_peer_memory() || runtime_->hooks().tear_at) return;
    for (const auto& f : frames_) f->alike = device::make_same_work(runtime_->queue());
    if (!frames_.empty() && frames_.front()->alike)
        log::info("replays its work as CUDA graphs, one per lane");
}

void stage_runner::enqueue_checked(frame_in_work& f) {
    device::queue& q = runtime_->queue();
    f.ended = false;
    const bool is_tombstone = f.job.is_tombstone();
    f.by_copy = !is_tombstone && reach_.next() == reach_choice::way::copy;
    // The injected write comes after the canaries that guard against it, and cannot be part of a graph.
    const bool harm = is_fault_requested(*runtime_);
    // A graph is made of a lane's first frame, which takes locks of the driver.
    const bool waits = f.alike && !f.has_graph && takeover_pause_.is_on(runtime_->control());
    device::same_work* alike = is_tombstone || harm || waits ? nullptr : f.alike.get();
    canaries_->plant(f);
    if (alike != nullptr) alike->begin();
    check_status(f, device::status_state::writing);
    if (harm) inject_fault(*runtime_, f.job);
    f.read_tombstone();
    f.clear_local();
    if (!is_tombstone) {
        if (f.job.ring_sequence == runtime_->hooks().tear_at && f.job.inputs > 0)
            q.write_status(runtime_->input(0).status(f.job.input[0].index), {~u64{0}, 0, 0});
        copy_inputs(f);
        process(f);
        if (f.ended) {
            if (alike != nullptr) alike->drop();
            return;
        }
        copy_outputs(f);
        if (f.job.is_tombstone()) {  // a source has passed it on; its work is not that of other frames
            if (alike != nullptr) std::exchange(alike, nullptr)->drop();
            keep_state(f);
        }
    } else {
        keep_state(f);
        const shm::block_open open;
        worker_.stage().counters.tombstones.fetch_add(1, std::memory_order_relaxed);
    }
    check_status(f, device::status_state::ready);
    if (alike != nullptr) alike->end();
    f.has_graph = f.has_graph || alike != nullptr;
    f.event = &runtime_->event_of(f.job.output[0].index, f.lane());
    f.event->record(q, worker_.tag(f.job));
    crash_here(crash_point::event_recorded);
}

// A tombstone has the state of the frame before it, from which the next frame continues.
void stage_runner::keep_state(const frame_in_work& f) {
    mapped_link* const states = runtime_->states();
    if (states == nullptr || states->slot_bytes <= before_payload) return;
    runtime_->queue().copy(states->slot(f.job.output[runtime_->outputs() - 1].index) + before_payload,
                           runtime_->previous_state(f.job) + before_payload,
                           states->slot_bytes - before_payload);
}

void stage_runner::process(frame_in_work& f) {
    f.in_process = true;
    detail::call_process(*stage_, f);
    f.in_process = false;
}

// Enqueues a check of the status words and canaries, which is one launch on a GPU.
void stage_runner::check_status(const frame_in_work& f, device::status_state state) {
    const device::status_step step = status_.step(f.job, f.lane(), state);
    if (step.count == 0 && step.writes == 0) return;
    std::array<device::canary_step, device::most_canaries> canaries;
    const bool first = state == device::status_state::writing;
    const std::size_t count = canaries_->steps(f, first, canaries.data());
    device::guarded_status(runtime_->queue(), step, std::span(canaries).first(count), first);
}

// For rings on another GPU that are accessed by copies: copies the inputs to this GPU before the work, and
// copies the outputs back after it. One staging slot per ring is enough, since the queue runs in order.
void stage_runner::copy_inputs(const frame_in_work& f) {
    for (u32 i = 0; f.by_copy && i < f.job.inputs; ++i) {
        mapped_link& in = runtime_->input(i);
        if (in.staging)
            runtime_->queue().copy(in.staging->data(), in.slot(f.job.input[i].index), in.slot_bytes);
    }
}

void stage_runner::copy_outputs(const frame_in_work& f) {
    for (u32 k = 0; f.by_copy && k < runtime_->outputs(); ++k) {
        mapped_link& out = *runtime_->output(k);
        if (!out.staging || out.slot_bytes <= before_payload) continue;
        runtime_->queue().copy(out.slot(f.job.output[k].index) + before_payload,
                               out.staging->data() + before_payload, out.slot_bytes - before_payload);
    }
}

void stage_runner::measure(const frame_in_work& f, u64 wait_began) {
    const u64 now = now_ns();
    meter_.add(f.job.submitted_ns, wait_began, now);
    // The span begins when the device could begin the frame.
    const u64 span = now - std::min(now, std::max(f.job.submitted_ns, last_complete_ns_));
    last_complete_ns_ = now;
    if (!f.job.is_tombstone() && reach_.add(f.by_copy, span)) log::info("{}", reach_.report());
    if (!meter_.due(now)) return;
    const shm::block_open open;
    runtime_->entry().work_ns.store(meter_.read(now), std::memory_order_relaxed);
}

// Returns the work per frame: if several contexts take turns, the sum over these contexts; if not, the work
// of this process. 0: the work of this process or of one of these contexts is unknown.
u64 stage_runner::work_of_a_turn() const {
    const depth_rule& rule = runtime_->attached().depth;
    if (rule.sharing != device_sharing::turns)
        return runtime_->entry().work_ns.load(std::memory_order_relaxed);
    u64 sum = 0;
    for (const u32 stage : rule.turn_stages) {
        const u64 work =
            stage < shm::max_stages ? work_of(runtime_->control(), runtime_->control().stage[stage]) : 0;
        if (work == 0) return 0;
        sum += work;
    }
    return sum;
}

void stage_runner::update_turns() {
    const depth_rule& rule = runtime_->attached().depth;
    if (rule.token == shm::none) return;
    const u32 lanes = depth_.now().lanes;
    const u64 work_ns = runtime_->entry().work_ns.load(std::memory_order_relaxed);
    turn_.set(rule.turn_frames > 0 ? std::min(rule.turn_frames, lanes) : frames_of_a_turn(lanes, work_ns),
              work_ns);
}

void stage_runner::update_depth() {
    const u64 now = now_ns();
    if (now < next_update_ns_) return;
    const bool first = next_update_ns_ == 0;
    next_update_ns_ = now + update_interval_ns;
    const u32 lanes = depth_.now().lanes;
    update_turns();
    const bool another = depth_.update(depth_.chooses() ? work_of_a_turn() : 0) || first;
    telemetry::depth_view d = depth_.now();
    d.graphs = !frames_.empty() && frames_.front()->alike != nullptr;
    d.reach = reach_.state();
    {
        const shm::block_open open;
        runtime_->entry().depth.store(d.pack(), std::memory_order_relaxed);
    }
    if (!another) return;
    if (worker_.outputs() > 0) worker_.reach(d.window);
    if (d.lanes != lanes)
        log::info("{} frames in flight (before: {}; at most {}): {}", d.lanes, lanes, frames_.size(),
                  d.reason());
}

}  // namespace carousel::stages
