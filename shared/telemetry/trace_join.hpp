#pragma once
// Joins traces of one pipeline over several hosts into one: times of the other hosts are converted to the
// clock of the host of `carousel run`, their stages are called HOST/STAGE, and each frame has one flow
// through all hosts.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace carousel::telemetry {

struct named_trace {
    std::string host;  ///< name of the host in the pipeline file
    std::string text;  ///< trace_json(), recorded on that host
};
/// `coordinator`: trace_json() of the host of `carousel run`, which has the other hosts' clocks. `warnings`:
/// one sentence for each host whose trace is incomplete. Throws config_error for a text that is not a trace,
/// or a host whose clock is missing in `coordinator`.
[[nodiscard]] std::string join_traces(const std::string& coordinator, const std::vector<named_trace>& others,
                                      std::vector<std::string>* warnings = nullptr);

}  // namespace carousel::telemetry
