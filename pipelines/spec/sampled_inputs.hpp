#pragma once
// Sampled inputs, the key `sampled` of a stage: rings whose newest frame a stage takes whenever it begins one
// of its own, or does without. It waits for none of them and holds none of their stages up, so they order
// nothing: a ring of a stage behind it may be among them, too.
//
// Errors: config_error at the place in the file.

#include <vector>

#include "spec/describe.hpp"

namespace carousel::supervisor {

/// Behind the inputs: which stage each sampled input is of. It counts as read, as by every latest reader.
void resolve_sampled_inputs(pipeline& p);
/// Behind the description of all stages: which output each sampled input is (into `all`), that the stage
/// takes sampled inputs at all, and that each ring has places for those who look at it.
void check_sampled_inputs(const pipeline& p, std::vector<stage_description>& all);
/// Index of the output of `from` that sampled input `sampled` of `s` names. Refuses one that isn't there.
[[nodiscard]] u32 sampled_output(const stage_spec& s, std::size_t sampled, const stage_description& from);
/// How many processes look at that ring as a sampled input: each instance is a latest member of its own.
[[nodiscard]] u32 sampled_members(const pipeline& p, const std::vector<stage_description>& all, u32 stage,
                                  u32 output);

}  // namespace carousel::supervisor
