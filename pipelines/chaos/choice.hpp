#pragma once
// Which faults the stages of a run can take.

#include <string>
#include <vector>

#include "chaos/faults.hpp"
#include "chaos/subject.hpp"

namespace carousel::supervisor::chaos {

/// Returns whether that seat can take the fault; a wild write only if a guard covers its target.
[[nodiscard]] bool can_take(const victim& v, fault f) noexcept;

/// Returns `requested`; if empty, all faults that some seat can take. Throws config_error if no seat can take
/// a requested one. `file`: the pipeline file.
[[nodiscard]] std::vector<fault> choose_kinds(const std::vector<fault>& requested,
                                              const std::vector<victim>& seats, const std::string& file);

}  // namespace carousel::supervisor::chaos
