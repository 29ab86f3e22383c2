#include "frame/frame_facts.hpp"

#include <algorithm>

#include "frame/metadata.hpp"

namespace carousel::ring {

void copy_facts(const shm::frame_header& h, u32 parameter_bytes, frame_facts& to) {
    to.meta() = h.meta;
    to.ring_sequence = h.ring_sequence.load(std::memory_order_relaxed);
    to.metadata_omitted = h.metadata_omitted;
    to.parameters.assign(h.parameters, h.parameters + std::min(parameter_bytes, shm::max_parameter_bytes));
    to.set(metadata_of(h), h.used.planes != 0 ? &h.used : nullptr);
    to.sampled_frames.assign(h.sampled_sequence,
                             h.sampled_sequence + std::min(h.sampled_inputs, shm::max_sampled_inputs));
}

}  // namespace carousel::ring
