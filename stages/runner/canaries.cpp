// Canaries behind slots (device/canary.hpp). A frame's last launch looks at those of its inputs and outputs,
// behind all that the stage has enqueued: damage stays, so a look behind the work sees what one in front of
// it would have, and one launch with several looks costs a GPU less than two with one. An input that this
// process or another reader can write to is looked at by the first launch: what comes behind that is not its
// maker's, as likely as not. What they have seen is read here, between the event and the commit. So a stage
// with one is never helped (stage_flag::owner_commits): nobody else looks.
//
// Planted is a canary when this process makes its first frame in that slot, in front of that frame's graph:
// what is whole behind one frame needs no planting for the next. Where others can write there, too (instances
// that fill the same ring, readers that map it for writing), each frame plants: whose a stray was while the
// slot was free nobody could tell.
//
// A stage that goes on with its output on the host (commits_on_host) writes behind that look. So there is a
// second one behind its finish(), on a queue of its own: the stage's belongs to the main thread.
//
// What a death leaves. Before the event: work that R2 has aborted, in a slot that is quarantined. Between the
// event and the commit, the look among it: a job that is SUBMITTED, which R2 aborts; a damaged canary goes
// with its slot. Behind the commit: a frame whose canary was whole. A successor has planted nowhere yet, and
// its pattern is another: it plants before anything else.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "ring/wild_write.hpp"
#include "stages/runner/exit_note.hpp"
#include "stages/runner/stage_runner.hpp"

namespace carousel::stages {
namespace {

constexpr u32 of_inputs = shm::max_outputs;  ///< where a frame's words for its inputs begin
static_assert(shm::max_outputs + shm::max_inputs <= device::most_canaries);

/// What is written into the canary behind a frame of that ring. The plan does not know of a GPU that can't
/// map for reading alone after all.
bool may_be_written_by_readers(const mapped_link& in) noexcept {
    return in.readers_write || !in.memory->read_only();
}

/// Bytes from the canary's begin.
u64 first_damaged(u32 found) noexcept { return found - device::canary_damaged; }

/// Whose end is the payload's: what lies behind that is the canary.
std::string_view last_plane(const ring::frame_format& format) noexcept {
    const auto last = std::max_element(format.planes.begin(), format.planes.end(),
                                       [](const auto& a, const auto& b) { return a.offset < b.offset; });
    return last == format.planes.end() ? "" : std::string_view(last->name);
}

}  // namespace

void stage_runner::map_canary_words() {
    bool any = runtime_->plants_canaries();
    for (u32 i = 0; i < worker_.stage().inputs; ++i) any = any || runtime_->input(i).canary_bytes != 0;
    if (!any) return;
    constexpr u64 a_frame = of_inputs + shm::max_inputs;
    canaries_ = runtime_->context().allocate_host(frames_.size() * a_frame * sizeof(device::canary_check));
    auto* at = reinterpret_cast<device::canary_check*>(canaries_->data());
    for (const auto& f : frames_) {
        f->canaries = at;
        at += a_frame;
    }
    if (!commits_on_host_ || !runtime_->plants_canaries()) return;
    recheck_queue_ = runtime_->context().make_queue();
    recheck_done_ = runtime_->context().make_event(nullptr);
}

// Any thread of the pool, else the completion thread.
void stage_runner::check_after_finish(const frame_in_work& f) {
    if (!recheck_queue_) return;
    std::array<device::canary_step, device::most_canaries> canaries;
    const std::size_t count = own_canaries(f, canaries.data());
    {
        const std::lock_guard lock(recheck_mutex_);
        device::guarded_status(*recheck_queue_, {}, std::span(canaries).first(count));
        recheck_done_->record(*recheck_queue_, 0);
        recheck_done_->wait();
    }
    check_own_canaries(f);
}

// The main thread. No part of a graph: other frames in the same lane need none.
void stage_runner::plant_canaries(const frame_in_work& f) {
    if (f.canaries == nullptr) return;
    std::array<device::canary_step, device::most_canaries> canaries;
    std::size_t count = 0;
    for (u32 k = 0; k < runtime_->outputs(); ++k) {
        mapped_link& own = *runtime_->output(k);
        if (own.canary_bytes == 0) continue;
        const u32 slot = f.job.output[k].index;
        const u64 key = device::canary_key(own.index, slot, worker_.epoch());
        if (std::exchange(own.planted.at(slot), key) == key && !own.others_write) continue;
        canaries[count++] = {own.canary(slot), key, nullptr};
    }
    device::plant_canaries(runtime_->queue(), std::span(canaries).first(count));
}

std::size_t stage_runner::own_canaries(const frame_in_work& f, device::canary_step* out) {
    std::size_t count = 0;
    for (u32 k = 0; k < runtime_->outputs(); ++k) {
        mapped_link& own = *runtime_->output(k);
        if (own.canary_bytes == 0) continue;
        const u32 slot = f.job.output[k].index;
        f.canaries[k].clear();
        out[count++] = {own.canary(slot), device::canary_key(own.index, slot, worker_.epoch()),
                        &f.canaries[k]};
    }
    return count;
}

// Those that a frame's first launch looks at, or its last one, their words cleared; how many.
std::size_t stage_runner::canaries_of(const frame_in_work& f, bool first, device::canary_step* out) {
    if (f.canaries == nullptr) return 0;
    std::size_t count = first ? 0 : own_canaries(f, out);
    for (u32 i = 0; i < f.job.inputs && f.job.void_stage == shm::none; ++i) {
        mapped_link& in = runtime_->input(i);
        if (in.canary_bytes == 0 || may_be_written_by_readers(in) != first) continue;
        const u32 slot = f.job.input[i].index;
        const u32 epoch = worker_.input(i).header(slot).epoch;
        device::canary_check& found = f.canaries[of_inputs + i];
        found.clear();
        out[count++] = {in.canary(slot), device::canary_key(in.index, slot, epoch), &found};
    }
    return count;
}

// A damaged one of its own: its maker is this process, which ends with that in its entry, and the frame is
// made anew.
void stage_runner::check_own_canaries(const frame_in_work& f) {
    for (u32 k = 0; k < runtime_->outputs(); ++k) {
        const mapped_link& out = *runtime_->output(k);
        const u32 found = f.canaries[k].result();
        if (out.canary_bytes == 0 || found == device::canary_whole) continue;
        const u64 offset = out.slot_bytes + first_damaged(found);
        note_wild_write(
            ring::wild_write{ring::wild_write_target::output, out.index, f.job.output[k].index, offset}
                .pack());
        log::error(
            "frame {}: a write beyond its slot in the ring {}, behind plane {}, {} bytes behind its end",
            f.job.ring_sequence, runtime_->control().link[out.index].name,
            last_plane(runtime_->output_format(k)), first_damaged(found));
        die(exit_code::stage_exception);
    }
}

// One of an input was whole when the frame was committed: it is torn, as by its status word, and is counted
// here, in front of the commit, so that no death keeps it from being.
void stage_runner::check_canaries(const frame_in_work& f) {
    if (f.canaries == nullptr) return;
    check_own_canaries(f);
    for (u32 i = 0; i < f.job.inputs && f.job.void_stage == shm::none; ++i) {
        const mapped_link& in = runtime_->input(i);
        const u32 found = f.canaries[of_inputs + i].result();
        if (in.canary_bytes == 0 || found == device::canary_whole) continue;
        const shm::link_block& ring = runtime_->control().link[in.index];
        const char* const maker = runtime_->control().stage[std::min(ring.stage, shm::max_stages - 1)].name;
        const std::string writer_text =
            may_be_written_by_readers(in)
                ? fmt::format("by {}, or by a reader that can write to it", maker)
                : fmt::format("by {} while it made another frame, as likely as not", maker);
        log::error(
            "frame {} is torn: behind plane {}, the last of its payload in the ring {}, {} bytes on, "
            "something was written after its commit: {}",
            f.job.ring_sequence, last_plane(runtime_->input_format(i)), ring.name, first_damaged(found),
            writer_text);
        const shm::block_open open;
        worker_.stage().counters.torn.fetch_add(1, std::memory_order_relaxed);
    }
}

}  // namespace carousel::stages
