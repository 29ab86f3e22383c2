// Parameters and time of a frame: from its header, or set by a source itself.
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

// Changes this process's own job, whose values are entered into the header at SUBMITTED.
void frame_in_work::stamp(const frame_stamp& with) {
    require_source_at_work("stamp()");
    const std::size_t bytes = parameter_bytes().size();
    if (!with.parameters.empty() && with.parameters.size() != bytes)
        throw config_error(fmt::format("frame {}: parameters of {} bytes, but the pipeline's have {}",
                                       job.ring_sequence, with.parameters.size(), bytes));
    job.time_s = with.time_s;
    if (with.capture_ns != 0) {
        job.clock = with.captured_here ? shm::capture_clock::live : shm::capture_clock::recorded;
        job.capture_ns = with.capture_ns;
    }
    if (with.frame_number) job.frame_number = *with.frame_number;
    if (with.born_ns != 0) job.born_ns = with.born_ns;
    if (with.parameters.empty()) return;
    job.parameter_number = with.parameter_number;
    std::memcpy(job.parameters, with.parameters.data(), bytes);
}

void frame_in_work::read_tombstone() {
    tombstone_text_.clear();
    if (!job.is_tombstone()) return;
    const u32 stage = std::min(job.void_stage, shm::max_stages - 1);
    tombstone_text_ = fmt::format("given up by stage {} after its last attempt (note {:#x})",
                                  runtime_->control().stage[stage].name, job.tombstone_reason);
}

// Like stamp(), changes the job only. The tombstone names this stage; its log contains where and why the
// frame was abandoned.
void frame_in_work::pass_tombstone() {
    if (!in_process || job.inputs > 0 || runtime_->output() == nullptr) frame::pass_tombstone();
    job.void_stage = runtime_->control().seat[runtime_->incarnation().seat].stage;
    job.tombstone_reason = static_cast<u32>(exit_code::stage_failed);
}

}  // namespace carousel::stages
