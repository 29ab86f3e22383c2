#include "stages/runner/frame_in_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "core/user_input.hpp"
#include "ring/header_check.hpp"
#include "stages/runner/finish_pool.hpp"
#include "stages/runner/running_clock.hpp"
#include "stages/runner/sampled_inputs.hpp"

namespace carousel::stages {

std::span<const std::byte> frame_in_work::parameter_bytes() const noexcept {
    return std::span(job.parameters)
        .first(std::min(runtime_->control().parameters.bytes, shm::max_parameter_bytes));
}

// Changes only this process's own job; the values of the job are copied into the header at SUBMITTED.
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
    const u32 stage = std::min(job.tombstone_stage, shm::max_stages - 1);
    tombstone_text_ = fmt::format("given up by stage {} after its last attempt (note {:#x})",
                                  runtime_->control().stage[stage].name, job.tombstone_reason);
}

// As stamp() does, this changes only the job. The tombstone names this stage; the stage's log contains the
// place and the reason of the abandonment.
void frame_in_work::pass_tombstone() {
    if (!in_process || job.inputs > 0 || runtime_->output() == nullptr) frame::pass_tombstone();
    job.tombstone_stage = runtime_->control().seat[runtime_->incarnation().seat].stage;
    job.tombstone_reason = static_cast<u32>(exit_code::stage_failed);
}

// The header belongs to this process from FILL to SUBMITTED. A stage may change the header until SUBMITTED,
// when it becomes final.
frame_metadata frame_in_work::metadata() noexcept {
    if (runtime_->output() == nullptr) return frame_metadata(std::span(metadata_).first(metadata_bytes_));
    shm::frame_header& h = own_header();
    if (in_process) return {h.metadata, h.metadata_bytes};
    return frame_metadata(ring::metadata_of(h));
}

std::size_t frame_in_work::output_index(std::string_view name) const {
    const std::size_t k = carousel::output_index(runtime_->attached().outputs, name);
    if (runtime_->states() == nullptr || k + 1 < runtime_->outputs()) return k;
    throw config_error(fmt::format("stage {} requests its state as the output \"{}\": use frame::state()",
                                   runtime_->attached().stage, name));
}

// The state is not accessible in finish(): the next frame may already have begun, and reads it.
frame_state frame_in_work::state() const {
    mapped_link* const states = runtime_->states();
    if (!in_process || states == nullptr) return frame::state();
    const std::size_t last = runtime_->outputs() - 1;
    const ring::frame_format* const format = &runtime_->output_format(last);
    const bool first = !job.previous && !runtime_->is_restored(job.ring_sequence);
    return {{runtime_->previous_state(job), format},
            {states->slot(job.output[last].index), format},
            first,
            first && job.ring_sequence != 0};
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

// Runs after SUBMITTED. This is allowed only for a stage whose frames no other process commits
// (owner_commits). No reader accesses the header before the job's owner commits, the owner stores COMMITTED
// (release) after the seal, and the audit inspects only READY slots. A crash here leaves the header of a
// frame that no process reads; a revoked process writes into a quarantined slot. If another process has
// changed the header in the meantime, this function neither changes nor seals it: no process leases a frame
// with such a header, and the audit reports it.
void frame_in_work::carry(std::span<const std::byte> metadata, const shm::used_extents& used) {
    const bool fits = metadata.size() <= shm::max_metadata_bytes;
    // The header of a state is final, because the next frame begins with it.
    if (in_process || runtime_->outputs() != 1 || runtime_->states() != nullptr || !fits ||
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
    throw std::logic_error(
        std::string(what) +
        " was called in a wrong place: it is only for process() of a source (a stage without inputs)");
}

void frame_in_work::set_capture_ns(u64 ns) {
    require_source_at_work("set_capture_ns()");
    job.set_capture_ns(ns);
}

sampled_frame frame_in_work::sampled(std::size_t i) const {
    if (i >= runtime_->sampled_inputs())
        throw config_error(fmt::format("stage {} requests sampled input {}; its pipeline file names {}",
                                       runtime_->attached().stage, i, runtime_->sampled_inputs()));
    const sampled_copy* const copy = sampled_input[i];
    if (copy == nullptr) return {};
    return {{copy->memory->data(), &runtime_->sampled_input_format(i), copy->facts.used_in_part()},
            copy->facts};
}

std::size_t frame_in_work::sampled_index(std::string_view name) const {
    std::vector<std::string> names;
    for (const sampled_input_description& s : runtime_->attached().sampled) {
        if (s.stage == name) return names.size();
        names.push_back(s.stage);
    }
    throw config_error(fmt::format("stage {} requests the sampled input \"{}\"; its pipeline file names {}{}",
                                   runtime_->attached().stage, name,
                                   names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")),
                                   did_you_mean_clause(std::string(name), names)));
}

void frame_in_work::in_parts(u32 parts, const std::function<void(u32 part)>& body) {
    if (pool == nullptr) return frame::in_parts(parts, body);
    pool->run_parts(parts, body);
}

void frame_in_work::wait_for_link(bool waits) {
    if (waits == waits_for_link || outside == nullptr) return;
    waits_for_link = waits;
    waits ? outside->begin(shm::pause_reason::link) : outside->end(shm::pause_reason::link);
}

void frame_in_work::end_stream() {
    const shm::stage_block& s = runtime_->stage_block();
    const auto refuse = [&](const char* why) {
        throw std::logic_error(
            fmt::format("stage {} calls end_stream() for frame {}, but {}", s.name, job.ring_sequence, why));
    };
    if (s.source == shm::none)
        refuse("it reads other stages, but only a stage without inputs can end the stream");
    if ((s.flags & shm::stage_flag::ends) == 0)
        refuse(
            "its configure() does not declare it: set description::ends, which the downstream stages are "
            "checked against");
    if (!in_process) refuse("not inside process(): the frame is already complete");
    ended = true;
}

}  // namespace carousel::stages
