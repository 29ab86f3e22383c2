#pragma once
// The links of a run: each ring with its format, memory, size and readers, in the form that `ps` lists.

#include <vector>

#include "control/ps_message.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

[[nodiscard]] std::vector<run::ps_link> links_of(const run_setup& s);

}  // namespace carousel::supervisor
