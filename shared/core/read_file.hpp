#pragma once

#include <optional>
#include <string>

namespace carousel {

/// The whole of a file, or nothing where it can't be opened or read (errno tells why). Never throws over the
/// file, as streams' iterators do: under /proc a read fails whenever the process ends between the open and
/// the read, which is an everyday thing here.
std::optional<std::string> read_file(const std::string& path);

}  // namespace carousel
