#pragma once
// The units of a recording, from its summary or, if there is none or its checksum is wrong, from the heads of
// its records. Reads in pieces, because a file may be larger than memory.

#include <string>
#include <vector>

#include "stages/recording/mcap/record.hpp"

namespace carousel::stages::mcap {

struct contents {
    preamble front;
    u64 front_bytes = 0;
    /// Units in the file's order. If bytes between two units belong to no unit, an entry with `damage`
    /// represents each frame that is missing there.
    std::vector<chunk_entry> chunks;
    bool ended = false;  ///< the file has its summary, whose checksum is correct
    u64 data_end = 0;  ///< position where the DataEnd record begins; 0: there is none, because the file ends
                       ///< within its units
    /// After the last unit.
    [[nodiscard]] u64 end() const noexcept { return chunks.empty() ? front_bytes : chunks.back().end(); }
};

/// The preamble alone. Throws format_error if it is not an MCAP file, or if it ends within the preamble.
[[nodiscard]] contents read_front(int fd);
/// The preamble and the units. Throws format_error.
[[nodiscard]] contents scan(int fd);
/// The records of a unit. Throws format_error if the unit's checksum is wrong, or if it is an entry with
/// `damage`.
void read_chunk(int fd, const chunk_entry& c, buffer& compressed, buffer& records);

}  // namespace carousel::stages::mcap
