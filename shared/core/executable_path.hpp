#pragma once
// The file of the program that this process runs.

#include <string>

namespace carousel {

/// Returns the absolute path of this process's program, or "" if /proc is not mounted. After the file was
/// replaced or removed, the path ends with " (deleted)". Thread-safe.
[[nodiscard]] std::string executable_path();

/// Returns the folder of executable_path(), or "".
[[nodiscard]] std::string executable_folder();

}  // namespace carousel
