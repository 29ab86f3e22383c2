#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel {

/// Returns the contents of a file, or nothing with errno if it can't be opened or read. File errors never
/// throw, unlike with stream iterators: under /proc a read fails whenever the process ends between open and
/// read, which is a frequent case here. A file of more than `max_bytes` is refused (EFBIG).
std::optional<std::string> read_file(const std::string& path,
                                     std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

/// The sorted paths of a folder's entries; empty if the folder can't be read. An entry may have been removed
/// in the meantime.
[[nodiscard]] std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);
/// Total bytes of all regular files below a folder; links are not followed, and a file that can't be read
/// counts as 0.
[[nodiscard]] u64 bytes_in(const std::filesystem::path& folder);

}  // namespace carousel
