#include "stages/runner/frame_canaries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "ring/exit_notes.hpp"
#include "stages/runner/exit_note.hpp"

namespace carousel::stages {
namespace {

constexpr u32 of_inputs = shm::max_outputs;  ///< index of the first input's word among a frame's words
static_assert(shm::max_outputs + shm::max_inputs <= device::most_canaries);

/// True if a reader can write into the canaries of that ring. The plan's flag does not show whether a GPU is
/// unable to map memory read-only, so the mapping is also checked.
bool may_be_written_by_readers(const mapped_link& in) noexcept {
    return in.readers_write || !in.memory->read_only();
}

/// Returns the offset in bytes from the start of the canary.
u64 first_damaged(u32 found) noexcept { return found - device::canary_damaged; }

/// Returns the plane at the end of the payload; the canary follows it.
std::string_view last_plane(const ring::frame_format& format) noexcept {
    const auto last = std::max_element(format.planes.begin(), format.planes.end(),
                                       [](const auto& a, const auto& b) { return a.offset < b.offset; });
    return last == format.planes.end() ? "" : std::string_view(last->name);
}

}  // namespace

frame_canaries::frame_canaries(runtime& r, ring::worker& w,
                               std::span<const std::unique_ptr<frame_in_work>> frames, bool again)
    : runtime_(&r), worker_(&w) {
    bool any = r.plants_canaries();
    for (const mapped_link& in : r.input_links()) any = any || in.canary_bytes != 0;
    if (!any) return;
    constexpr u64 a_frame = of_inputs + shm::max_inputs;
    words_ = r.context().allocate_host(frames.size() * a_frame * sizeof(device::canary_check));
    auto* at = reinterpret_cast<device::canary_check*>(words_->data());
    for (const auto& f : frames) {
        f->canaries = at;
        at += a_frame;
    }
    if (!again || !r.plants_canaries()) return;
    queue_ = r.context().make_queue();
    done_ = r.context().make_event(nullptr);
}

void frame_canaries::check_after_finish(const frame_in_work& f) {
    if (!queue_) return;
    std::array<device::canary_step, device::most_canaries> canaries;
    const std::size_t count = own_steps(f, canaries.data());
    {
        const std::lock_guard lock(mutex_);
        device::guarded_status(*queue_, {}, std::span(canaries).first(count));
        done_->record(*queue_, 0);
        done_->wait();
    }
    check_own(f);
}

// Planting is not part of a graph, because later frames in the same lane need no planting.
void frame_canaries::plant(const frame_in_work& f) {
    if (f.canaries == nullptr) return;
    std::array<device::canary_step, device::most_canaries> canaries;
    std::size_t count = 0;
    for (u32 k = 0; k < runtime_->outputs(); ++k) {
        mapped_link& own = *runtime_->output(k);
        if (own.canary_bytes == 0) continue;
        const u32 slot = f.job.output[k].index;
        const u64 key = device::canary_key(own.index, slot, worker_->epoch());
        if (std::exchange(own.planted.at(slot), key) == key && !own.others_write) continue;
        canaries[count++] = {own.canary(slot), key, nullptr};
    }
    device::plant_canaries(runtime_->queue(), std::span(canaries).first(count));
}

std::size_t frame_canaries::own_steps(const frame_in_work& f, device::canary_step* out) {
    std::size_t count = 0;
    for (u32 k = 0; k < runtime_->outputs(); ++k) {
        mapped_link& own = *runtime_->output(k);
        if (own.canary_bytes == 0) continue;
        const u32 slot = f.job.output[k].index;
        f.canaries[k].clear();
        out[count++] = {own.canary(slot), device::canary_key(own.index, slot, worker_->epoch()),
                        &f.canaries[k]};
    }
    return count;
}

std::size_t frame_canaries::steps(const frame_in_work& f, bool first, device::canary_step* out) {
    if (f.canaries == nullptr) return 0;
    std::size_t count = first ? 0 : own_steps(f, out);
    for (u32 i = 0; i < f.job.inputs && !f.job.is_tombstone(); ++i) {
        mapped_link& in = runtime_->input(i);
        if (in.canary_bytes == 0 || may_be_written_by_readers(in) != first) continue;
        const u32 slot = f.job.input[i].index;
        const u32 epoch = worker_->input(i).header(slot).epoch;
        device::canary_check& found = f.canaries[of_inputs + i];
        found.clear();
        out[count++] = {in.canary(slot), device::canary_key(in.index, slot, epoch), &found};
    }
    return count;
}

// If the canary of an output is damaged, this process has overwritten it: this process records the damage in
// its entry and ends, and the frame is made again.
void frame_canaries::check_own(const frame_in_work& f) {
    for (u32 k = 0; k < runtime_->outputs(); ++k) {
        const mapped_link& out = *runtime_->output(k);
        const u32 found = f.canaries[k].result();
        if (out.canary_bytes == 0 || found == device::canary_whole) continue;
        const u64 offset = out.slot_bytes + first_damaged(found);
        note_wild_write(
            ring::wild_write{ring::wild_write_target::output, out.index, f.job.output[k].index, offset}
                .pack());
        log::error("frame {}: a write beyond its slot in the ring {}, after plane {}, {} bytes after its end",
                   f.job.ring_sequence, runtime_->control().link[out.index].name,
                   last_plane(runtime_->output_format(k)), first_damaged(found));
        die(exit_code::stage_exception);
    }
}

// The canary of an input was intact when the frame was committed. So a damaged canary means that the frame
// is torn, and so does a status word that does not match. Damage is counted here, before the commit, so that
// a crash cannot lose the count.
void frame_canaries::check(const frame_in_work& f) {
    if (f.canaries == nullptr) return;
    check_own(f);
    for (u32 i = 0; i < f.job.inputs && !f.job.is_tombstone(); ++i) {
        const mapped_link& in = runtime_->input(i);
        const u32 found = f.canaries[of_inputs + i].result();
        if (in.canary_bytes == 0 || found == device::canary_whole) continue;
        const shm::link_block& ring = runtime_->control().link[in.index];
        const char* const maker = runtime_->control().stage[std::min(ring.stage, shm::max_stages - 1)].name;
        const std::string writer_text =
            may_be_written_by_readers(in)
                ? fmt::format("by {}, or by a reader that can write to it", maker)
                : fmt::format("possibly by {} while it processed another frame", maker);
        log::error(
            "frame {} is torn: after plane {}, the last of its payload in the ring {}, {} bytes on, "
            "something was written after its commit: {}",
            f.job.ring_sequence, last_plane(runtime_->input_format(i)), ring.name, first_damaged(found),
            writer_text);
        const shm::block_open open;
        worker_->stage().counters.torn.fetch_add(1, std::memory_order_relaxed);
    }
}

}  // namespace carousel::stages
