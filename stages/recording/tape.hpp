#pragma once
// A recording while it is being written, by a stage (recorder.hpp) or by an external program (tape_main.cpp).
// It has one unit per frame, and any number of incarnations may write it one after another.
//
// An incarnation leaves a note in the run's runtime directory, by which the next incarnation recognizes its
// own file. A crash also leaves the file, which is complete up to its last unit (mcap/record.hpp). A frame
// that is already in the file is not written again.

#include <memory>
#include <span>
#include <string>

#include "stages/recording/frame_message.hpp"
#include "stages/recording/jpeg_message.hpp"
#include "stages/recording/mcap/writer.hpp"
#include "stages/recording/recording.hpp"

namespace carousel::stages {

/// A frame of one ring.
struct taped_frame {
    frame_facts facts;
    const std::byte* slot = nullptr;  ///< the frame's slot, in memory that the CPU can read
};

class tape {
public:
    /// `note`: the path of the note. The rings are those of `about`. Throws config_error if the file exists
    /// and does not belong to this run.
    tape(std::string path, std::string compression, recording about, const std::string& note);
    /// Opens the file and waits for the file's lock, because the process that holds the lock may be about to
    /// end. Throws output_error, disk_full_error.
    void open();
    [[nodiscard]] bool is_open() const noexcept { return file_ != nullptr; }
    /// True if the file has that frame of the ring, or a later one.
    [[nodiscard]] bool has(u64 frame_number, std::size_t ring = 0) const noexcept {
        return rings_[ring].any && frame_number <= rings_[ring].last;
    }
    /// Appends one unit, which has one frame of each ring, in the order of the rings. Throws like open(); the
    /// file is then unchanged.
    void append(std::span<const taped_frame> frames) { append(frames, 0); }
    /// Appends one unit that has a frame of only one ring, for recordings in which each ring has its own
    /// frames. Throws like the function above.
    void append(const taped_frame& frame, std::size_t ring) { append({&frame, 1}, ring); }
    /// Writes the end of the file, with an index, and logs one line.
    void finish() noexcept;

    [[nodiscard]] u64 frames() const noexcept { return file_ ? file_->units() : 0; }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] const recording& about() const noexcept { return about_; }

private:
    void append(std::span<const taped_frame> frames, std::size_t first_ring);

    std::string path_, compression_;
    recording about_;
    std::unique_ptr<mcap::writer> file_;
    struct ring_end {
        bool any = false;  ///< true if the file has a frame of this ring; `last` is the number of its last
                           ///< frame
        u64 last = 0;
    };
    std::vector<ring_end> rings_;
    std::vector<mcap::buffer> messages_, jpegs_;
    jpeg_messages jpeg_;
};

}  // namespace carousel::stages
