#pragma once
// The data that a frame carries in addition to its payload.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/types.hpp"
#include "frame/frame_format.hpp"
#include "shm/frame_header.hpp"

namespace carousel::ring {

// A frame's metadata: small named values that are passed from ring to ring in the frame's header. The bytes:
//   entry = {kind u8, key bytes u8, value bytes u16, key, value}      one after the other, not aligned
// Writers: the producer's worker copies the entries of the inputs (step S3), and the stage adds entries in
// process(); the entries are final at SUBMITTED. Readers: any process that holds a lease. The bytes come from
// another process: a reader parses them entry by entry, stops at the first invalid entry, and never reads
// past the bytes in use.
// A join takes all entries of the first input. From each further input, in order, it takes the entries whose
// key is not present yet. Entries for which there is no room are omitted and counted in the header; the count
// is passed on with the frame.

inline constexpr u32 max_metadata_key = 63;

/// The alternatives are in the order of the kind numbers in the bytes; the kind numbers begin with 1.
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
    /// True if the next bytes are not a valid entry and so cannot have been written by a stage.
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

// The part of a plane that a frame uses: at most as large as the declared plane, at the same offset and with
// the same strides. Point clouds, detections and compressed data fill a part of their planes.
// The extents are in the frame's header (shm/frame_header.hpp): set by the producer before SUBMITTED, and
// clamped by every reader, because another process has written them.

static_assert(max_rank == shm::max_plane_rank);

/// Returns true if plane `index` is used in part.
[[nodiscard]] inline bool is_used_in_part(const shm::used_extents& used, std::size_t index) noexcept {
    return index < shm::max_used_planes && (used.planes >> index & 1U) != 0;
}
/// Returns the number of elements in use along dimension `d` of a plane.
[[nodiscard]] u64 used_extent(const plane& p, std::size_t index, u32 d,
                              const shm::used_extents& used) noexcept;
/// Returns the plane with the extents in use as its shape, and with explicit strides. The returned plane's
/// bytes() are counted from the first element in use to the end of the last one; 0 if no element is in use.
[[nodiscard]] plane used_plane(const frame_format& f, std::size_t index, const shm::used_extents& used);
/// Sets the leading extents of a plane; the others are used as declared. Throws config_error if there is no
/// such plane, if there are more or larger extents than those of the plane, or for a plane after the eighth.
void set_used(shm::used_extents& used, const frame_format& f, std::string_view plane,
              std::span<const u64> extents);
/// Returns "points 120 x 3 of 4096 x 3", for all planes that are used in part; "" if there are none.
[[nodiscard]] std::string describe_used(const frame_format& f, const shm::used_extents& used);

// The data of a frame in addition to its payload, as a copy in this process's memory: taken from a header, a
// recorded frame, or a saved frame.

struct frame_facts : shm::frame_meta {
    u64 ring_sequence = 0;
    u32 metadata_omitted = 0;
    std::vector<std::byte> parameters = {};  ///< the parameter set with which the frame was made; empty: none
    std::vector<std::byte> metadata = {};    ///< frame/metadata.hpp
    shm::used_extents used = {};
    /// frame numbers of the sampled inputs of the frame's producer, or shm::no_sampled_frame
    std::vector<u64> sampled_frames = {};

    /// Null: all planes are used as declared.
    [[nodiscard]] const shm::used_extents* used_in_part() const noexcept {
        return used.planes != 0 ? &used : nullptr;
    }
    void set(std::span<const std::byte> metadata_bytes, const shm::used_extents* used_of) {
        metadata.assign(metadata_bytes.begin(), metadata_bytes.end());
        used = used_of != nullptr ? *used_of : shm::used_extents{};
    }
};

/// Copies a header and clamps its counts. The caller either holds a lease, or checks afterwards that the
/// header has not changed. `parameter_bytes`: size of the run's parameter set. The memory of `to` is reused.
void copy_facts(const shm::frame_header& h, u32 parameter_bytes, frame_facts& to);

}  // namespace carousel::ring
