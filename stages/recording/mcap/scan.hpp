#pragma once
// What lies in a recording, by the heads of its records or, where it has an end, by its summary. Reads by
// pieces: a file may be larger than memory.

#include <string>
#include <vector>

#include "stages/recording/mcap/record.hpp"

namespace carousel::stages::mcap {

struct contents {
    preamble front;
    u64 front_bytes = 0;
    std::vector<chunk_entry> chunks;  ///< whole units, in the file's order
    bool ended = false;               ///< it has its summary
    /// Behind the last whole unit: here the next one goes.
    [[nodiscard]] u64 end() const noexcept { return chunks.empty() ? front_bytes : chunks.back().end(); }
};

/// The preamble alone. Throws format_error: no MCAP, or it ends in there.
[[nodiscard]] contents read_front(int fd);
/// All of it. Throws format_error.
[[nodiscard]] contents scan(int fd);
/// The records of a unit. Throws format_error: the check sum is another one.
void read_chunk(int fd, const chunk_entry& c, buffer& compressed, buffer& records);

}  // namespace carousel::stages::mcap
