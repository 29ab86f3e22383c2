#pragma once
// Traces of one pipeline over several hosts as one: the others' times by the clock of the host of `carousel
// run`, their stages called HOST/STAGE, and the flow of a frame through all of them.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace carousel::telemetry {

struct named_trace {
    std::string host;  ///< as in the pipeline file
    std::string text;  ///< trace_json(), recorded there
};
/// `coordinator`: trace_json() of the host of `carousel run`, which knows the others' clocks. `warnings`:
/// what is missing in the others' parts, a sentence each. Throws config_error: a text that is no trace, a
/// host whose clock that one does not know.
[[nodiscard]] std::string join_traces(const std::string& coordinator, const std::vector<named_trace>& others,
                                      std::vector<std::string>* warnings = nullptr);

}  // namespace carousel::telemetry
