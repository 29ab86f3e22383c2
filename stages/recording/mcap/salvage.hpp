#pragma once
// Finds the units of a recording whose summary is missing, because a killed recorder has not written it, or
// whose bytes are damaged. If a byte is damaged, the unit that contains it is lost, and the search continues
// at the next unit.

#include "stages/recording/mcap/scan.hpp"

namespace carousel::stages::mcap {

/// Fills c.chunks and c.data_end from the bytes after the preamble. Bytes that belong to no unit are skipped.
void find_units(int fd, contents& c);
/// Inserts an entry with a text in `damage` wherever units are missing, that is, where bytes between two
/// units, or between the last unit and c.data_end, belong to no unit. The numbers of the frames before and
/// after determine how many are missing, and of which channels.
void mark_gaps(int fd, contents& c);

}  // namespace carousel::stages::mcap
