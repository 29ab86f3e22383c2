#pragma once
// Where pictures go. A pattern that is absolute (also --out PATTERN, taken from the current folder) stays; a
// relative one of the pipeline file goes into a fresh folder ./runs/NAME-TIME/, so that no run writes over
// another's pictures. A film (.mp4) takes the pipeline's rate.

#include <string>

#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

/// "20260131-235959", local time.
[[nodiscard]] std::string now_stamp();
/// Sets the displays' `out` and run_setup::pictures; makes the folders. Throws output_error for one that
/// can't be written.
void prepare_pictures(run_setup& s, const std::string& stamp);
/// DIR/logs. Throws output_error.
void make_log_folder(const std::string& directory);

}  // namespace carousel::supervisor
