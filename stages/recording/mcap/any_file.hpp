#pragma once
// Reads MCAP files of any program: chunks with any number of messages, and messages outside of chunks. A file
// may lack its end: all complete messages are found. Reads the file from its beginning and does not use its
// summary.

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "stages/recording/mcap/scan.hpp"

namespace carousel::stages::mcap {

inline constexpr std::size_t no_chunk = std::numeric_limits<std::size_t>::max();

/// Where a message is.
struct message_place {
    std::size_t chunk = no_chunk;  ///< index of the chunk; no_chunk: it is a record of the file
    u64 at = 0, bytes = 0;         ///< its data: within the records of the chunk, or within the file
    u16 channel = 0;
    u32 sequence = 0;
    u64 log_ns = 0;
};

struct any_contents {
    std::string library;
    std::vector<schema> schemas;
    std::vector<channel> channels;
    std::vector<chunk_entry> chunks;
    std::vector<message_place> messages;  ///< in the file's order
    bool has_end = false;                 ///< the file has its DataEnd record
    u64 lost_chunks = 0;                  ///< damaged: their messages are missing
    u64 cut_at = 0;    ///< position of the bytes after the last complete record; 0: there are none
    std::string text;  ///< the reason of the loss; "": nothing is missing

    [[nodiscard]] const channel* channel_of(u16 id) const noexcept;
    [[nodiscard]] const schema* schema_of(u16 channel_id) const noexcept;
};

/// Finds the messages. `enough`: called after each chunk; true ends the search. Throws format_error if it is
/// not an MCAP file.
[[nodiscard]] any_contents scan_any(int fd, const std::function<bool(const any_contents&)>& enough = {});

/// Reads messages of a file; keeps the chunk of the last one.
class message_reader {
public:
    message_reader(int fd, const any_contents& of) : fd_(fd), of_(&of) {}
    /// The data of a message, valid until the next call. Throws format_error.
    [[nodiscard]] std::span<const std::byte> read(const message_place& at);

private:
    int fd_;
    const any_contents* of_;
    std::size_t chunk_ = no_chunk;
    buffer compressed_, records_, alone_;
};

}  // namespace carousel::stages::mcap
