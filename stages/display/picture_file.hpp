#pragma once
// Files of pictures: either whole or not there.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>

namespace carousel::stages {

/// Writes `bytes`, and `rest` behind them, to a name of this process's own in the same folder, then renames
/// it over `path`: a reader, or a process that comes after a kill, sees the old file, the new one or none,
/// never a part. Not synced: it guards against a killed process, not against a power cut. `wanted` is asked
/// last: when it says no, nothing is written. Several threads may write at once, each another path. Throws
/// output_error: what, where, what to do.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                           const std::function<bool()>& wanted = {}, std::span<const std::byte> rest = {});

/// Makes `folder` (and those above it) and tries to write there. Removes what killed processes left of
/// write_file_atomically. Throws output_error.
void prepare_folder(const std::filesystem::path& folder);

}  // namespace carousel::stages
