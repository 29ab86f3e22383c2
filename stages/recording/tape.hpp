#pragma once
// A recording as it is written, by a stage (recorder.hpp) or by a program that a run knows by its port
// (tape_main.cpp): one unit a frame, over any number of lives.
//
// What a life leaves is a note in the run's folder, by which the next one knows its own file, and a file that
// is whole up to its last unit (mcap/record.hpp). A frame that stands there already is not written again.

#include <memory>
#include <span>
#include <string>

#include "stages/recording/frame_message.hpp"
#include "stages/recording/mcap/writer.hpp"
#include "stages/recording/recording.hpp"

namespace carousel::stages {

/// A frame of one ring.
struct taped_frame {
    frame_facts facts;
    const std::byte* slot = nullptr;  ///< in memory that the CPU can read
};

class tape {
public:
    /// `note`: its path. The rings are those of `about`. Throws config_error: the file is there, and not of
    /// this run.
    tape(std::string path, std::string compression, recording about, const std::string& note);
    /// Waits for the file's lock: its holder may be about to end. Throws output_error, disk_full_error.
    void open();
    [[nodiscard]] bool is_open() const noexcept { return file_ != nullptr; }
    /// An earlier life has written it, or a later one.
    [[nodiscard]] bool has(u64 sequence) const noexcept { return any_ && sequence <= last_; }
    /// One unit: a frame of each ring, in their order. Throws as open() does; the file is as before then.
    void append(std::span<const taped_frame> frames);
    /// The file gets its end, with an index, and the log a line.
    void finish() noexcept;

    [[nodiscard]] u64 frames() const noexcept { return file_ ? file_->units() : 0; }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] const recording& about() const noexcept { return about_; }

private:
    std::string path_, compression_;
    recording about_;
    std::unique_ptr<mcap::writer> file_;
    bool any_ = false;  ///< there is a frame in the file: the last one's number is `last_`
    u64 last_ = 0;
    std::vector<mcap::buffer> messages_;
};

}  // namespace carousel::stages
