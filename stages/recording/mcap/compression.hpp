#pragma once
// A chunk's compression, by the libraries of zstd and lz4 where this was built with them.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace carousel::stages::mcap {

/// "none", and of "lz4", "zstd" those that were built in.
[[nodiscard]] const std::vector<std::string>& compressions();

/// Fills `to`, whose size is what came of it. `how`: one of compressions(). Throws error.
void compress(std::string_view how, std::span<const std::byte> from, std::vector<std::byte>& to);
/// `how` as a file names it ("" is none); `to` has the size that is expected. Throws format_error: it can't
/// be undone, or comes to another size; config_error: it was not built in.
void decompress(std::string_view how, std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace carousel::stages::mcap
