#pragma once
// The outputs of stages by name. A pipeline file reads the first output of a stage by the stage's name alone,
// and each by STAGE.OUTPUT. Only the stage's program knows its outputs, so names are resolved when it is
// described, not when the file is read.
//
// Throws config_error with the place in the file.

#include <string>
#include <vector>

#include "spec/describe.hpp"

namespace carousel::supervisor {

/// "fork" or "fork.square", split.
struct ring_name {
    std::string stage, output;  ///< output "": the first
};
[[nodiscard]] ring_name ring_name_of(const std::string& written);
/// "number, square"; for a single output without a name "one without a name".
[[nodiscard]] std::string output_names(const stage_description& d);
/// Returns the index of the output of `from` that input `input` of `reader` names. Throws config_error if
/// there is none.
[[nodiscard]] u32 output_read(const stage_spec& reader, std::size_t input, const stage_description& from);
/// Called after all stages are described. Throws config_error unless each output has a reader that waits for
/// it, and no more readers than a ring can have; no stage reads one output twice; there are no more rings
/// than a run can have; and each [link] belongs to a ring.
void check_outputs(const pipeline& p, const std::vector<stage_description>& all);

}  // namespace carousel::supervisor
