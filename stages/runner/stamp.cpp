// Parameters and time of a frame: as its header has them, and a source's own in their place.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/errors.hpp"
#include "stages/runner/frame_in_work.hpp"

namespace carousel::stages {

std::span<const std::byte> frame_in_work::parameter_bytes() const noexcept {
    return std::span(job.parameters)
        .first(std::min(runtime_->control().parameters.bytes, shm::max_parameter_bytes));
}

// The header is this process's from FILL to SUBMITTED, as it is in worker::write_header: of a revoked one the
// slot is in quarantine, and nobody reads it.
void frame_in_work::stamp(const frame_stamp& with) {
    require_source_at_work("stamp()");
    const std::size_t bytes = parameter_bytes().size();
    if (!with.parameters.empty() && with.parameters.size() != bytes)
        throw config_error(fmt::format("frame {}: parameters of {} bytes, but the pipeline's have {}",
                                       job.sequence, with.parameters.size(), bytes));
    const shm::block_open open;
    shm::frame_header& h = own_header();
    h.time_s = job.time_s = with.time_s;
    if (with.capture_ns != 0) {
        h.clock = job.clock = with.captured_here ? shm::capture_clock::live : shm::capture_clock::recorded;
        h.capture_ns = job.capture_ns = with.capture_ns;
    }
    if (with.number) h.number = job.called = *with.number;
    if (with.born_ns != 0) h.born_ns = job.born_ns = with.born_ns;
    if (with.parameters.empty()) return;
    h.parameter_number = job.parameter_number = with.parameter_number;
    std::memcpy(job.parameters, with.parameters.data(), bytes);
    std::memcpy(h.parameters, with.parameters.data(), bytes);
}

// As stamp(): the header is this process's. The stage that is named is this one; who gave the frame up
// elsewhere stands in its log.
void frame_in_work::pass_void() {
    if (!in_process || job.inputs > 0 || runtime_->output() == nullptr) frame::pass_void();
    const shm::block_open open;
    shm::frame_header& h = own_header();
    h.void_stage = job.void_stage = runtime_->control().seat[runtime_->who().seat].stage;
    h.void_reason = job.void_reason = static_cast<u32>(exit_code::stage_failed);
}

}  // namespace carousel::stages
