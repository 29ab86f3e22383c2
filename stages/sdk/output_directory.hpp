#pragma once
// The output directory of a run: runs/NAME-DATE in the directory in which the run was started. A run without
// files leaves no directory, so the first stage process that requests it creates it.

#include <string>

namespace carousel {

/// Creates the directory and its parents unless they exist, and returns `path`. Several processes may call it
/// concurrently. Throws disk_full_error or output_error; `path` is empty if the run has no output directory.
std::string make_output_directory(const std::string& path);

}  // namespace carousel
