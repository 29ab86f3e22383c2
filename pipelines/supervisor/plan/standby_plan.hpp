#pragma once
// Decides which stages have warm standbys if standby is "auto": those on a GPU, if the memory of each GPU
// suffices for the contexts of all of them, and, under MPS, if the GPU admits a second server for them
// (mps/mps_domain.hpp). Either all of these stages have standbys or none, because under MPS they take over
// together.

#include <string>

#include "supervisor/plan/context_memory.hpp"
#include "supervisor/plan/depth_plan.hpp"

namespace carousel::supervisor {

/// Sets spec.standby of the stages with spec.standby_auto, and standby_reason. To be called after
/// choose_depths().
void choose_standbys(run_setup& s, const free_memory& memory);
/// Names the standbys and the GPU memory of their contexts; "": the run has none, and "auto" was not asked.
[[nodiscard]] std::string standby_text(const run_setup& s);
/// Returns the reason why no standby can start in the run's spare MPS domain; "": there is none.
[[nodiscard]] std::string no_spare_text(const run_setup& s);

}  // namespace carousel::supervisor
