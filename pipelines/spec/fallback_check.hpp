#pragma once
// The keys `fallback`: which stages may leave their GPU, and the refusal of those that can't.

#include <vector>

#include "spec/describe.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::supervisor {

/// True if the file lets the stage move from its GPU to the CPU, alone or with the run. It may still be on
/// the CPU by its device "auto".
[[nodiscard]] bool may_leave_gpu(const pipeline_spec& p, const stage_spec& s) noexcept;
/// Throws config_error, with the place in the file, if a stage with `fallback` has no body for the CPU, does
/// not declare bit_equal, or receives frames that can't be made again.
void check_fallback(const pipeline& p, const std::vector<stage_description>& all);
/// "fallback: vertex, fragment move to the CPU if the GPU fails"; "": no stage can leave its GPU.
[[nodiscard]] std::string fallback_text(const pipeline& p, const std::vector<stage_description>& all);
/// Returns the names of the stages that leave their GPU only because of `fallback_inexact`.
[[nodiscard]] std::vector<std::string> inexact_stages(const pipeline& p,
                                                      const std::vector<stage_description>& all);

}  // namespace carousel::supervisor
