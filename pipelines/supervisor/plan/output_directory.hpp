#pragma once
// The run's output directory, ./runs/NAME-TIME/, a different one for each run, and the paths of the pictures.
// An absolute pattern is used unchanged, and so is --out PATTERN, which is relative to the working directory;
// a relative one of the pipeline file is put into the output directory. A film (.mp4) uses the pipeline's
// frame rate.

#include <string>

#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

/// "20260131-235959", local time.
[[nodiscard]] std::string now_stamp();
/// Sets run_setup::output_directory, the displays' `out` and run_setup::pictures; creates the directories of
/// the pictures. Throws output_error if one of them cannot be written.
void prepare_outputs(run_setup& s, const std::string& stamp);
/// The output directory if a stage has created it; "" otherwise.
[[nodiscard]] std::string created_output_directory(const run_setup& s);
/// Creates DIR/logs. Throws output_error.
void make_log_folder(const std::string& directory);

}  // namespace carousel::supervisor
