#pragma once
// From which frame on one host has what a durable host behind it may have lost.

#include <optional>
#include <string>

#include "supervisor/plan/hosts_plan.hpp"

namespace carousel::supervisor {

/// Sending stages of host `from` ("": that of `carousel run`) mark a frame when all sinks of the durable host
/// `to` have it. Two links hear of that one after the other, so the one that has come furthest is right: what
/// lies below its first unmarked frame may be released here, and is in those sinks' files. Nothing: no link
/// leads there. `folder`: of this host's run. Throws output_error.
[[nodiscard]] std::optional<u64> first_kept(const hosts_plan& plan, const std::string& folder,
                                            const std::string& from, const std::string& to);

}  // namespace carousel::supervisor
