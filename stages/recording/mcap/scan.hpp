#pragma once
// Reads the records of a file, and finds the units of a recording in it.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stages/recording/mcap/record.hpp"

namespace carousel::stages::mcap {

// Reads the records of a file one after the other, by their heads, without keeping more than a window of the
// file in memory.

/// Bytes of the file; 0 if it can't be inspected.
[[nodiscard]] u64 size_of(int fd);
/// Fills `to` from position `at`. Returns false if the file ends before `to` is full. Throws format_error if
/// the read failed.
[[nodiscard]] bool read_at(int fd, u64 at, std::span<std::byte> to);

/// The opcode and the length that precede the content of a record.
struct head {
    opcode code{};
    u64 length = 0;
};

/// Returns the head at the beginning of `raw`, which has at least head_bytes bytes.
[[nodiscard]] head read_head(std::span<const std::byte> raw);

class record_stream {
public:
    record_stream(int fd, u64 at) : fd_(fd), size_(size_of(fd)), at_(at) {}
    /// Returns false if the file ends before the end of the head or of the record.
    [[nodiscard]] bool next(head& h);
    /// The first `bytes` bytes of the content of the current record, which begins at at(). Valid until the
    /// next call. Throws format_error.
    [[nodiscard]] std::span<const std::byte> content(const head& h, u64 bytes);
    void skip(const head& h) noexcept { at_ += head_bytes + h.length; }
    [[nodiscard]] u64 at() const noexcept { return at_; }

private:
    bool take(u64 at, std::span<std::byte> to);

    int fd_;
    u64 size_, at_, window_at_ = 0, next_window_ = 4096;
    buffer window_, content_;
};

// Finds the units of a recording in its summary or, if there is no summary or its checksum is wrong, by the
// heads of its records. Reads in pieces, because a file may be larger than memory.

struct contents {
    preamble front;
    u64 front_bytes = 0;
    /// Units in the file's order. If bytes between two units belong to no unit, an entry with `damage`
    /// represents each frame that is missing between the two units.
    std::vector<chunk_entry> chunks;
    bool ended = false;  ///< true if the file has a summary and the summary's checksum is correct
    u64 data_end = 0;  ///< position where the DataEnd record begins; 0: there is none, because the file ends
                       ///< within its units
    /// After the last unit.
    [[nodiscard]] u64 end() const noexcept { return chunks.empty() ? front_bytes : chunks.back().end(); }
};

/// The preamble alone. Throws format_error if the file is not an MCAP file, or if it ends within the
/// preamble.
[[nodiscard]] contents read_front(int fd);
/// The preamble and the units. Throws format_error.
[[nodiscard]] contents scan(int fd);
/// Reads the head of a chunk from the bytes that begin at position `at`; chunk_entry::channels stays empty.
/// Returns nothing if they are not the head of a chunk with consistent lengths. The chunk may be longer than
/// the file.
[[nodiscard]] std::optional<chunk_entry> read_chunk_head(std::span<const std::byte> raw, u64 at);
/// Returns the chunk at `at` that the file's end cuts, with its complete messages' channels. Returns nothing
/// if the file does not end within a chunk, or if no message in it is complete.
[[nodiscard]] std::optional<chunk_entry> cut_chunk_at(int fd, u64 at);
inline constexpr u64 longest_compression_name = 16;
inline constexpr u64 chunk_head_room = head_bytes + chunk_head_bytes + longest_compression_name;

/// The records of a unit; of a unit that is cut, those that are complete. Throws format_error if the unit's
/// checksum is wrong, or if it is an entry with `damage`.
void read_chunk(int fd, const chunk_entry& c, buffer& compressed, buffer& records);

// Finds the units of a recording that has no summary, because its recorder was killed, or that contains
// damaged bytes. If a byte is damaged, the unit that contains it is lost, and the search continues at the
// next unit.

/// Fills c.chunks and c.data_end from the bytes after the preamble. Bytes that belong to no unit are skipped.
void find_units(int fd, contents& c);
/// Where bytes between two units, or between the last unit and c.data_end, belong to no unit, units are
/// missing. This function inserts entries with a text in `damage` at these places. The numbers of the frames
/// before and after the gap determine how many frames are missing, and of which channels.
void mark_gaps(int fd, contents& c);

}  // namespace carousel::stages::mcap
