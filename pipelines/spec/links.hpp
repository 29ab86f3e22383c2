#pragma once
// The links of a pipeline as its file names them: outputs of stages, and sampled inputs.

#include <string>
#include <vector>

#include "spec/describe.hpp"

namespace carousel::supervisor {

// The outputs of stages by name. A pipeline file reads the first output of a stage by the stage's name alone,
// and every output by STAGE.OUTPUT. Only the stage's program knows its outputs, so names are resolved when
// the stage is described, not when the file is read. Throws config_error with the place in the file.

/// "fork" or "fork.square", split.
struct ring_name {
    std::string stage, output;  ///< output "": the first
};
[[nodiscard]] ring_name ring_name_of(const std::string& written);
/// Returns e.g. "number, square"; returns "one without a name" for a single output without a name.
[[nodiscard]] std::string output_names(const stage_description& d);
/// Returns the index of the output of stage `from` that is named by input number `input` of stage `reader`.
/// Throws config_error if there is none.
[[nodiscard]] u32 output_read(const stage_spec& reader, std::size_t input, const stage_description& from);
/// Called after all stages are described. Throws config_error if an output has no reader that waits for it,
/// or more readers than a ring can have; if a stage reads one output twice; if there are more rings than a
/// run can have; or if a [link] belongs to no ring.
void check_outputs(const pipeline& p, const std::vector<stage_description>& all);

// Sampled inputs, the key `sampled` of a stage: rings whose newest frame a stage takes whenever it begins a
// frame of its own; the stage also runs if such a ring has no frame yet. The sampling stage neither waits for
// these rings nor delays their stages, so sampled inputs impose no order, and a stage may also sample a ring
// of a downstream stage. Throws config_error with the place in the file.

/// Called after the inputs are resolved: finds the stage of each sampled input. A sampled output counts as an
/// output that is read, like an output with a latest reader.
void resolve_sampled_inputs(pipeline& p);
/// Called after all stages are described: finds the output of each sampled input (into `all`), and checks
/// that the stage accepts sampled inputs and that no output is named twice.
void check_sampled_inputs(const pipeline& p, std::vector<stage_description>& all);
/// Returns the index of the output of stage `from` that is named by sampled input number `sampled` of stage
/// `s`. Throws config_error if there is none.
[[nodiscard]] u32 sampled_output(const stage_spec& s, std::size_t sampled, const stage_description& from);
/// Returns the number of processes that sample that ring; each instance joins the ring as a separate latest
/// member.
[[nodiscard]] u32 sampled_members(const pipeline& p, const std::vector<stage_description>& all, u32 stage,
                                  u32 output);

}  // namespace carousel::supervisor
