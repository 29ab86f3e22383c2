#pragma once
// Picture files and their folder.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>

namespace carousel::stages {

/// Writes `bytes`, then `rest`, to `path` in the same way as write_output_file (core/output_file.hpp). Throws
/// output_error that names the file, the cause and the remedy.
void write_picture_file(const std::filesystem::path& path, std::span<const std::byte> bytes,
                        const std::function<bool()>& wanted = {}, std::span<const std::byte> rest = {});

/// Creates `folder` (and its parents) and tries to write there. Removes the temporary files of processes that
/// were killed during write_picture_file. Throws output_error.
void prepare_folder(const std::filesystem::path& folder);

}  // namespace carousel::stages
