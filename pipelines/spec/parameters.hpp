#pragma once
// The parameters of a pipeline: the schema that its stages name, and the values that they begin with.

#include "ring/parameter_schema.hpp"
#include "spec/describe.hpp"

namespace carousel::supervisor {

struct parameter_plan {
    ring::parameter_schema schema;  ///< none: no stage takes parameters
    std::vector<std::byte> values;  ///< the schema's own, with what [parameters] says put in
};

/// Throws config_error: stages that name different ones (both are told), keys and values of [parameters] that
/// the schema doesn't take, at their place in the file.
[[nodiscard]] parameter_plan plan_parameters(const pipeline& p,
                                             const std::vector<stage_description>& described);

}  // namespace carousel::supervisor
