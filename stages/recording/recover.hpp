#pragma once
// Writes a complete MCAP file from one that lacks its end or has damaged parts.

#include <string>

namespace carousel::stages {

/// Copies each complete message of `from` to the new file `to`, also those of a chunk that the end of the
/// file cuts. `from`: a recording of Carousel, or an MCAP file of another program with at most 64 channels.
/// The units of a recording keep their rings; messages of other files get a chunk of their own for each group
/// of channels. Returns sentences about what was copied and what was lost. Throws config_error, output_error.
[[nodiscard]] std::string recover(const std::string& from, const std::string& to);

}  // namespace carousel::stages
