#pragma once
// The first frame that a host still has for a durable downstream host, which may have lost the frame.

#include <optional>
#include <string>

#include "supervisor/plan/hosts_plan.hpp"

namespace carousel::supervisor {

/// Sending stages of host `from` ("": the host of `carousel run`) mark a frame when all sinks of the durable
/// host `to` have it. Two links receive this information at different times, so the highest first unmarked
/// frame of these links is authoritative: frames below it may be released here, and are in those sinks'
/// files. Returns nothing if no link leads there. `folder`: folder of this host's run. Throws output_error.
[[nodiscard]] std::optional<u64> first_kept(const hosts_plan& plan, const std::string& folder,
                                            const std::string& from, const std::string& to);

}  // namespace carousel::supervisor
