#pragma once
// The parameters of a pipeline: the schema that its stages name, and the initial values.

#include "parameters/parameter_schema.hpp"
#include "spec/describe.hpp"

namespace carousel::supervisor {

struct parameter_plan {
    ring::parameter_schema schema;  ///< empty: no stage takes parameters
    std::vector<std::byte> values;  ///< the schema's default values, overridden by [parameters]
};

/// Throws config_error if stages name different schemas (the message has both), or, at their place in the
/// file, for keys and values of [parameters] that the schema does not accept.
[[nodiscard]] parameter_plan plan_parameters(const pipeline& p,
                                             const std::vector<stage_description>& described);

}  // namespace carousel::supervisor
