#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel {

/// The whole of a file, or nothing where it can't be opened or read (errno tells why). Never throws over the
/// file, as streams' iterators do: under /proc a read fails whenever the process ends between the open and
/// the read, which is an everyday thing here. A file of more than `max_bytes` is not read (EFBIG).
std::optional<std::string> read_file(const std::string& path,
                                     std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

/// The paths of a folder's entries, sorted; empty if it can't be read. An entry may be gone by then.
[[nodiscard]] std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);
/// Bytes of all regular files below a folder; links are not followed, and what can't be read counts as 0.
[[nodiscard]] u64 bytes_in(const std::filesystem::path& folder);

}  // namespace carousel
