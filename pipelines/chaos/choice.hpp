#pragma once
// Which faults the stages of a run can take.

#include <string>
#include <vector>

#include "chaos/faults.hpp"
#include "chaos/subject.hpp"

namespace carousel::supervisor::chaos {

/// Whether that seat can: a stray write, only where something guards against it.
[[nodiscard]] bool can_take(const victim& v, fault f) noexcept;

/// `requested`; empty: all that some seat can take. Throws config_error: none can take one that is asked for.
/// `file`: of the pipeline.
[[nodiscard]] std::vector<fault> choose_kinds(const std::vector<fault>& requested,
                                              const std::vector<victim>& seats, const std::string& file);

}  // namespace carousel::supervisor::chaos
