#pragma once
// PNG files of a run: quick to encode, and either whole or not there.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace carousel::stages {

/// Encodes width x height RGBA8 pixels (sRGB, dense rows, top row first). Tuned for time, not size. Throws
/// output_error.
[[nodiscard]] std::vector<std::byte> encode_png(std::span<const std::byte> rgba, u32 width, u32 height);

/// Writes `bytes` to a name of this process's own in the same folder, then renames it over `path`: a reader,
/// or a process that comes after a kill, sees the old file, the new one or none, never a part. Not synced: it
/// guards against a killed process, not against a power cut. `wanted` is asked last: when it says no, nothing
/// is written. Throws output_error: what, where, what to do.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                           const std::function<bool()>& wanted = {});

/// Makes `folder` (and those above it) and tries to write there. Removes what killed processes left of
/// write_file_atomically. Throws output_error.
void prepare_folder(const std::filesystem::path& folder);

}  // namespace carousel::stages
