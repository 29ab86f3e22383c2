#pragma once
// Sampled inputs, the key `sampled` of a stage: rings whose newest frame a stage takes whenever it begins a
// frame of its own; the stage also runs if such a ring has no frame yet. It neither waits for these rings nor
// delays their stages, so they impose no order: a stage may also sample a ring of a downstream stage.
//
// Throws config_error with the place in the file.

#include <vector>

#include "spec/describe.hpp"

namespace carousel::supervisor {

/// Called after the inputs are resolved: finds the stage of each sampled input. The output counts as read, in
/// the same way as for every latest reader.
void resolve_sampled_inputs(pipeline& p);
/// Called after all stages are described: finds the output of each sampled input (into `all`), and checks
/// that the stage accepts sampled inputs and that no output is named twice.
void check_sampled_inputs(const pipeline& p, std::vector<stage_description>& all);
/// Returns the index of the output of `from` that sampled input `sampled` of `s` names. Throws config_error
/// if there is none.
[[nodiscard]] u32 sampled_output(const stage_spec& s, std::size_t sampled, const stage_description& from);
/// Returns the number of processes that sample that ring: each instance joins it as a separate latest member.
[[nodiscard]] u32 sampled_members(const pipeline& p, const std::vector<stage_description>& all, u32 stage,
                                  u32 output);

}  // namespace carousel::supervisor
