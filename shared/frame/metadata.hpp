#pragma once
// A frame's metadata: small named values that are passed from ring to ring in the frame's header. The bytes:
//
//   entry = {kind u8, key bytes u8, value bytes u16, key, value}      one after the other, not aligned
//
// Writers: the producer's worker copies the entries of the inputs (S3), the stage adds to them in process();
// final at SUBMITTED. Readers: any process that holds a lease. The bytes come from another process: a reader
// parses them entry by entry, stops at the first invalid entry, and never reads past the bytes in use.
//
// A join takes the first input's entries, and then from each further input, in order, the entries whose key
// is not present yet. Entries for which there is no room are omitted and counted in the header; the count is
// passed on with the frame.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "core/types.hpp"
#include "shm/frame_header.hpp"

namespace carousel::ring {

inline constexpr u32 max_metadata_key = 63;

/// In the order of the kind numbers in the bytes, which begin with 1.
using metadata_value = std::variant<bool, i64, u64, f64, std::string_view, std::span<const std::byte>>;
[[nodiscard]] const char* kind_of(
    const metadata_value& value) noexcept;  ///< "bool", "i64", .. "text", "bytes"

struct metadata_entry {
    std::string_view key;
    metadata_value value;
};

/// Iterates over the entries; returns views into the bytes.
class metadata_reader {
public:
    explicit metadata_reader(std::span<const std::byte> bytes) noexcept : left_(bytes) {}
    /// Returns false if there are no more entries, or if the next bytes are not a valid entry.
    [[nodiscard]] bool next(metadata_entry& out) noexcept;
    /// True if the next bytes are not a valid entry, so a stage has not written them.
    [[nodiscard]] bool damaged() const noexcept { return damaged_; }

private:
    std::span<const std::byte> left_;
    bool damaged_ = false;
};

/// The metadata bytes of a header that are in use, clamped to the size of the field.
[[nodiscard]] std::span<const std::byte> metadata_of(const shm::frame_header& h) noexcept;
[[nodiscard]] std::optional<metadata_value> find_metadata(std::span<const std::byte> bytes,
                                                          std::string_view key) noexcept;

enum class metadata_change : u8 {
    done,
    bad_key,    ///< empty, longer than max_metadata_key, or with a character other than A-Z a-z 0-9 _ . : / -
    bad_value,  ///< a text with control characters, or not valid UTF-8
    no_room,
};
/// Adds the entry of that key, or replaces it. Changes nothing unless the result is `done`. The first `bytes`
/// bytes of `room` are in use.
[[nodiscard]] metadata_change set_metadata(std::span<std::byte> room, u32& bytes, std::string_view key,
                                           const metadata_value& value) noexcept;
/// Removes the entry of that key. Returns false if there is no such entry.
bool erase_metadata(std::span<std::byte> room, u32& bytes, std::string_view key) noexcept;
/// Adds the entries of `more` whose keys are not present yet; returns the number of entries for which there
/// was no room. A damaged entry and all entries after it are counted as one.
u32 merge_metadata(std::span<std::byte> room, u32& bytes, std::span<const std::byte> more) noexcept;

/// Formats all entries on one line: "exposure_ms 3.5, camera "left""; "" if there are none.
[[nodiscard]] std::string line_of(std::span<const std::byte> bytes);
/// Formats one value for display: 3.5, true, "left camera", 12 bytes.
[[nodiscard]] std::string text_of(const metadata_value& value);

}  // namespace carousel::ring
