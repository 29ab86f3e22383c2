#pragma once
// The index of a video: what the decoder has output, frame by frame. Frame n of a run is entry n, so that
// each process of the stage gives the same number to the same picture. The process that decodes a frame for
// the first time writes its entry, before it passes the frame on; a successor finds the entries of all frames
// that are not committed yet, or decodes from the beginning.
//
// A file of fixed records: a header, then one record per frame at a place that depends only on the frame's
// number. Each record has a checksum over its number, its values and the file's identity. A process that was
// stopped and continues after its successor has started writes the same bytes to the same places. What a
// crash leaves: records up to some number; a record that is not whole ends the index there, and is written
// again.

#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::stages::video {

/// One frame that the decoder has output, or one that is missing because its packet is damaged.
struct index_entry {
    i64 pts = 0;           ///< presentation time, in the stream's time base; increases from entry to entry
    i64 dts = 0;           ///< decoding time of its packet, in the same unit
    u64 hash = 0;          ///< of the decoded picture
    bool key = false;      ///< its packet is a key frame: a decoder can start there
    bool missing = false;  ///< a tombstone: there is no picture
    bool operator==(const index_entry&) const = default;
};

class frame_index {
public:
    /// Opens the index at `path`, or creates it; an index of another `identity` is emptied. Throws
    /// output_error.
    frame_index(const std::string& path, u64 identity);

    [[nodiscard]] u64 size() const noexcept { return entries_.size(); }
    [[nodiscard]] const index_entry& operator[](u64 frame) const noexcept { return entries_[frame]; }
    /// Appends entry size() and writes it to the file. If that fails, the index in the file ends there, and a
    /// successor decodes from there on: no frame depends on a write.
    void append(const index_entry& e);
    /// The number of frames of the whole video; empty until a process has reached its end.
    [[nodiscard]] std::optional<u64> total() const noexcept { return total_; }
    /// Records that the video ends after the last entry.
    void complete();
    /// True if frames can't be found by their times: two of them have the same, or some have none. Such a
    /// video is always decoded from its beginning.
    [[nodiscard]] bool irregular() const noexcept { return irregular_; }
    void set_irregular();

    /// The frame that is shown at that time; empty if there is none. Only in a regular index.
    [[nodiscard]] std::optional<u64> at_time(i64 pts) const noexcept;
    /// A place at which a decoder can start.
    struct start {
        u64 key = 0;    ///< the key frame whose packet is decoded first
        u64 exact = 0;  ///< from this frame on, pictures are those of a decoder that started at the beginning
    };
    /// The places from which frame `frame` can be reached, the nearest one first: with one key frame before
    /// the one from which all frames are exact, because frames after a key frame may refer to frames before
    /// it (open groups of pictures). Empty: only from the beginning.
    [[nodiscard]] std::vector<start> starts_for(u64 frame) const;

    /// Copies a complete index to `path`, where it appears as a whole or not at all. Errors are ignored,
    /// because a later run can make the index again.
    void keep_as(const std::string& path) const noexcept;

private:
    void report(bool written);
    void write_header();
    void read_all();

    std::string path_;
    u64 identity_;
    shm::unique_fd file_;
    std::vector<index_entry> entries_;
    std::vector<u64> keys_;  ///< numbers of the entries that are key frames
    std::optional<u64> total_;
    bool irregular_ = false, reported_ = false;
};

}  // namespace carousel::stages::video
