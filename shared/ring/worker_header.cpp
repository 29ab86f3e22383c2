// The worker's writes into its frame's header: between FILL and SUBMITTED the header belongs to this process.
#include <algorithm>
#include <cstring>

#include "frame/metadata.hpp"
#include "ring/header_check.hpp"
#include "ring/parameter_box.hpp"
#include "ring/worker.hpp"

namespace carousel::ring {
namespace {

void share_metadata(const shm::frame_header& from, shm::frame_header& to) noexcept {
    to.metadata_bytes = std::min(from.metadata_bytes, shm::max_metadata_bytes);
    to.metadata_omitted = from.metadata_omitted;
    std::memcpy(to.metadata, from.metadata, to.metadata_bytes);
}

void take_tombstone(const shm::frame_meta& from, shm::frame_meta& to) noexcept {
    to.tombstone_stage = from.tombstone_stage;
    to.tombstone_reason = from.tombstone_reason;
}

}  // namespace

// Called twice. Called before the lease: if the leases that follow succeed, the headers belong to the slots'
// generations, because freeing a slot in between would change the words that the leases expect. Called again
// before SUBMITTED: proves that all data read from the headers since the lease matched the seal and belongs
// to this frame. A header that does not match its seal is left to the supervisor.
bool worker::inputs_are_whole(const job& j) const noexcept {
    for (u32 i = 0; i < j.inputs; ++i) {
        const shm::frame_header& h = input_header(j, i);
        if (h.ring_sequence.load(std::memory_order_relaxed) != j.ring_sequence ||
            !is_sealed(h, control_->parameters.bytes))
            return false;
    }
    return !j.previous || previous_is_whole(j);
}

// The header of the previous state is final: its frame was submitted before this one began.
bool worker::previous_is_whole(const job& j) const noexcept {
    const shm::frame_header& h = output_[outputs_ - 1]->header(j.previous.index);
    return h.ring_sequence.load(std::memory_order_relaxed) + 1 == j.ring_sequence &&
           h.epoch == j.previous_epoch && is_sealed(h, control_->parameters.bytes);
}

// Returns false if the frame's parameters are unknown, because the word that determines them is still
// damaged.
bool worker::write_header(job& j) noexcept {
    const std::size_t bytes = std::min(control_->parameters.bytes, shm::max_parameter_bytes);
    if (j.inputs > 0) {
        const shm::frame_meta own = j.meta();
        // a join takes the data of its first input; a frame has the same number in every ring
        j.meta() = input_header(j, 0).meta;
        std::memcpy(j.parameters, input_header(j, 0).parameters, bytes);
        if (!j.is_tombstone()) take_tombstone(own, j);
        for (u32 i = 1; i < j.inputs; ++i) {
            const shm::frame_meta& from = input_header(j, i).meta;
            if (from.is_tombstone())
                take_tombstone(from, j);  // a tombstone frame has the same position in all rings
            if (j.clock != shm::capture_clock::none) continue;
            j.clock = from.clock;  // the clock of the first input that has a clock
            j.capture_ns = from.capture_ns;
        }
    } else {
        const shm::parameter_set* set = parameters_for(control_->parameters, j.ring_sequence);
        if (set == nullptr) return false;
        j.frame_number = j.ring_sequence;
        j.parameter_number = set->number;
        std::memcpy(j.parameters, set->value, bytes);
        j.time_s = static_cast<f64>(j.ring_sequence) / (control_->fps > 0 ? control_->fps : 60.0);
        j.born_ns = j.claimed_ns;
    }
    for (u32 k = 0; k < outputs_; ++k) write_header_at(j, k);
    return true;
}

void worker::write_header_at(job& j, u32 output) noexcept {
    link_ref& out = *output_[output];
    shm::frame_header& h = out.header_to_write(j.output[output].index);
    enter(j, seat_, epoch_, control_->parameters.bytes, h);
    out.block().committed_ns[j.output[output].index].store(0, std::memory_order_relaxed);
    h.used.planes = 0;
    h.sampled_inputs = std::min(stage_->sampled_inputs, shm::max_sampled_inputs);
    for (u32 k = 0; k < h.sampled_inputs; ++k) h.sampled_sequence[k] = sampled_frame_[k];
    forward_metadata(j, h);
    j.output[output].ring_sequence = j.ring_sequence;
}

void enter(const job& j, u32 seat, u32 epoch, u32 parameter_bytes, shm::frame_header& h) noexcept {
    h.ring_sequence.store(j.ring_sequence, std::memory_order_release);  // after claim(): see ready_slot()
    h.epoch = epoch;
    h.maker_seat = seat;
    h.previous_epoch = j.previous_epoch;
    h.claimed_ns = j.claimed_ns;
    h.submitted_ns = j.submitted_ns;
    h.meta = j.meta();
    std::memcpy(h.parameters, j.parameters, std::min(parameter_bytes, shm::max_parameter_bytes));
}

// The used extents of the planes belong to one ring's payload only. The metadata entries of the first
// output's header are copied into the headers of the other outputs.
void worker::seal_headers(const job& j) noexcept {
    for (u32 k = 0; k < outputs_; ++k) {
        shm::frame_header& to = output_[k]->header_to_write(j.output[k].index);
        if (k > 0) share_metadata(output_[0]->header(j.output[0].index), to);
        enter(j, seat_, epoch_, control_->parameters.bytes, to);
        seal(to, control_->parameters.bytes);  // the last write into the header
    }
}

// Writes the metadata entries of the job's inputs, beginning with the first input. The stage finds these
// entries in the header and may add others until SUBMITTED.
void worker::forward_metadata(const job& j, shm::frame_header& to) noexcept {
    to.metadata_bytes = to.metadata_omitted = 0;
    for (u32 i = 0; i < j.inputs; ++i) {
        const shm::frame_header& from = input_header(j, i);
        to.metadata_omitted += from.metadata_omitted;
        if (from.metadata_bytes != 0)
            to.metadata_omitted += merge_metadata(to.metadata, to.metadata_bytes, metadata_of(from));
    }
}

}  // namespace carousel::ring
