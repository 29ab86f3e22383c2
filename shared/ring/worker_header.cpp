// What a worker writes into its frame's header: between FILL and SUBMITTED it is this process's own.
#include <algorithm>
#include <cstring>

#include "ring/header_check.hpp"
#include "ring/metadata.hpp"
#include "ring/parameter_box.hpp"
#include "ring/worker.hpp"

namespace carousel::ring {
namespace {

void share_metadata(const shm::frame_header& from, shm::frame_header& to) noexcept {
    to.metadata_bytes = std::min(from.metadata_bytes, shm::max_metadata_bytes);
    to.metadata_omitted = from.metadata_omitted;
    std::memcpy(to.metadata, from.metadata, to.metadata_bytes);
}

}  // namespace

// Asked twice. Before the lease: headers of the slots' generations, if the leases that follow succeed, for a
// free in between changes the words which those expect. And before SUBMITTED: what was taken from them since
// was what had been sealed, of this very frame. One that is not as it was sealed is left to the supervisor.
bool worker::inputs_are_whole(const job& j) const noexcept {
    for (u32 i = 0; i < j.inputs; ++i) {
        const shm::frame_header& h = input_header(j, i);
        if (h.ring_sequence.load(std::memory_order_relaxed) != j.ring_sequence ||
            !is_sealed(h, control_->parameters.bytes))
            return false;
    }
    return true;
}

// False: nobody knows which parameters the frame has, since the word that says it is damaged still.
bool worker::write_header(job& j) noexcept {
    const std::size_t bytes = std::min(control_->parameters.bytes, shm::max_parameter_bytes);
    if (j.inputs > 0) {
        const shm::frame_header& from = input_header(j, 0);
        // at a join the first input's; its number has the same in every ring
        j.frame_number = from.frame_number;
        j.parameter_number = from.parameter_number;
        std::memcpy(j.parameters, from.parameters, bytes);
        j.time_s = from.time_s;
        j.born_ns = from.born_ns;
        for (u32 i = 0; i < j.inputs; ++i) {
            const shm::frame_header& h = input_header(j, i);
            if (h.void_stage != shm::none) {  // given up upstream: it keeps its position through all rings
                j.void_stage = h.void_stage;
                j.tombstone_reason = h.tombstone_reason;
            }
            if (j.clock == shm::capture_clock::none) {  // the first input that has one
                j.clock = h.clock;
                j.capture_ns = h.capture_ns;
            }
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
    h.ring_sequence.store(j.ring_sequence, std::memory_order_relaxed);
    h.epoch = epoch;
    h.maker_seat = seat;
    h.void_stage = j.void_stage;
    h.tombstone_reason = j.tombstone_reason;
    h.born_ns = j.born_ns;
    h.claimed_ns = j.claimed_ns;
    h.submitted_ns = j.submitted_ns;
    h.time_s = j.time_s;
    h.frame_number = j.frame_number;
    h.parameter_number = j.parameter_number;
    h.clock = j.clock;
    h.capture_ns = j.capture_ns;
    std::memcpy(h.parameters, j.parameters, std::min(parameter_bytes, shm::max_parameter_bytes));
}

// What is in use of the planes is of one ring's payload alone. The entries every ring has as they are at the
// first output.
void worker::seal_headers(const job& j) noexcept {
    for (u32 k = 0; k < outputs_; ++k) {
        shm::frame_header& to = output_[k]->header_to_write(j.output[k].index);
        if (k > 0) share_metadata(output_[0]->header(j.output[0].index), to);
        enter(j, seat_, epoch_, control_->parameters.bytes, to);
        seal(to, control_->parameters.bytes);  // the last write into it
    }
}

// What the stage finds, and may add to until SUBMITTED: its inputs' entries, the first input's first.
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
