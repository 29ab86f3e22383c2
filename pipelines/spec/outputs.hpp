#pragma once
// The outputs of stages by name. A pipeline file reads the first output of a stage by the stage's name alone,
// and each by STAGE.OUTPUT. Which outputs there are only the stage's program says, so names are resolved when
// it is described, and not when the file is read.
//
// Errors: config_error at the place in the file.

#include <string>
#include <vector>

#include "spec/describe.hpp"

namespace carousel::supervisor {

/// "fork" or "fork.square", taken apart.
struct ring_name {
    std::string stage, output;  ///< output "": the first
};
[[nodiscard]] ring_name ring_name_of(const std::string& written);
/// "number, square"; of an only output without a name "one without a name".
[[nodiscard]] std::string output_names(const stage_description& d);
/// Index of the output of `from` that input `input` of `reader` names. Refuses one that isn't there.
[[nodiscard]] u32 output_read(const stage_spec& reader, std::size_t input, const stage_description& from);
/// Behind the description of all stages: each output has a reader that waits for it, and no more readers than
/// a ring can have; no stage reads one output twice; there are as many rings as a run can have; each [link]
/// is of a ring.
void check_outputs(const pipeline& p, const std::vector<stage_description>& all);

}  // namespace carousel::supervisor
