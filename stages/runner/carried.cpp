// What a frame carries in addition to its payload: metadata, capture time and the used extents of its planes.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "ring/header_check.hpp"
#include "stages/runner/frame_in_work.hpp"

namespace carousel::stages {

// The header belongs to this process from FILL to SUBMITTED, when it becomes final; until then a stage may
// change it.
frame_metadata frame_in_work::metadata() noexcept {
    if (runtime_->output() == nullptr) return frame_metadata(std::span(metadata_).first(metadata_bytes_));
    shm::frame_header& h = own_header();
    if (in_process) return {h.metadata, h.metadata_bytes};
    return frame_metadata(ring::metadata_of(h));
}

void frame_in_work::take_carried() {
    for (u32 i = 0; i < job.inputs; ++i) {
        const shm::frame_header& from = header_of_input(i);
        carried_input& to = carried_[i];
        const std::span<const std::byte> entries = ring::metadata_of(from);
        to.metadata_bytes = static_cast<u32>(entries.size());
        std::copy(entries.begin(), entries.end(), to.metadata.begin());
        to.sampled_inputs = std::min(from.sampled_inputs, shm::max_sampled_inputs);
        std::copy_n(from.sampled_sequence, to.sampled_inputs, to.sampled_input.begin());
        to.used.planes = 0;
        if (from.used.planes != 0) to.used = from.used;
    }
    if (runtime_->output() != nullptr) return;
    metadata_bytes_ = 0;
    for (u32 i = 0; i < job.inputs; ++i)
        if (const auto entries = carried_[i].entries(); !entries.empty())
            (void)ring::merge_metadata(metadata_, metadata_bytes_, entries);
}

// Runs after SUBMITTED, which is allowed only for a stage without helpers (owner_commits). Until its owner
// commits, no reader accesses the header, and COMMITTED (release) follows the seal; the audit inspects READY
// slots. A crash here leaves the header of a frame that no process reads; a revoked process writes into a
// quarantined slot. A header that another process has changed meanwhile is left as found, unsealed: no
// process leases it, and the audit reports it.
void frame_in_work::carry(std::span<const std::byte> metadata, const shm::used_extents& used) {
    const bool fits = metadata.size() <= shm::max_metadata_bytes;
    if (in_process || runtime_->outputs() != 1 || !fits ||
        (runtime_->stage_block().flags & shm::stage_flag::owner_commits) == 0)
        frame::carry(metadata, used);
    const shm::block_open open;
    shm::frame_header& h = own_header();
    if (!ring::is_sealed(h, runtime_->control().parameters.bytes)) return;
    h.metadata_bytes = static_cast<u32>(metadata.size());
    std::copy(metadata.begin(), metadata.end(), h.metadata);
    h.used = used;
    const u32 bytes = runtime_->control().parameters.bytes;
    ring::enter(job, runtime_->incarnation().seat, runtime_->epoch(), bytes, h);
    ring::seal(h, bytes);
}

void frame_in_work::require_source_at_work(const char* what) const {
    if (in_process && job.inputs == 0 && runtime_->output() != nullptr) return;
    throw std::logic_error(std::string(what) +
                           " is for process() of a source: a stage without inputs, in a run");
}

void frame_in_work::set_capture_ns(u64 ns) {
    require_source_at_work("set_capture_ns()");
    job.set_capture_ns(ns);
}

}  // namespace carousel::stages
