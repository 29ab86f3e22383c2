#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>

namespace carousel {

/// The whole of a file, or nothing where it can't be opened or read (errno tells why). Never throws over the
/// file, as streams' iterators do: under /proc a read fails whenever the process ends between the open and
/// the read, which is an everyday thing here. A file of more than `max_bytes` is not read (EFBIG).
std::optional<std::string> read_file(const std::string& path,
                                     std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

}  // namespace carousel
