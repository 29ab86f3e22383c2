#pragma once
// The frames of one ring of a recording, by their places in it.

#include <string>
#include <vector>

#include "shm/fd_socket.hpp"
#include "stages/recording/frame_message.hpp"
#include "stages/recording/recording.hpp"

namespace carousel::stages {

/// Opens a recording. Throws config_error that names the key "file" of the stage.
[[nodiscard]] shm::unique_fd open_recording(const std::string& path);
/// Reads the description in the preamble. Throws config_error that names the file.
[[nodiscard]] recording describe_recording(const std::string& path);

class ring_reader {
public:
    ring_reader() = default;
    /// Finds the frames of about.rings[ring], and logs damaged or missing ones. Throws config_error if the
    /// file is being recorded or can't be read.
    ring_reader(std::string path, const recording& about, std::size_t ring);

    /// The number of places. A damaged frame also has a position, so the frames after it keep theirs.
    [[nodiscard]] u64 size() const noexcept { return units_.size(); }
    /// Reads the frame at `place` (below size()) into a slot of the ring's format. Throws error with
    /// exit_code::stage_exception, which names the place and the file, if the frame is damaged or missing.
    frame_facts read(u64 place, std::byte* slot);

private:
    std::string path_;
    ring::frame_format format_;
    u16 channel_ = 0;
    shm::unique_fd fd_;
    std::vector<mcap::chunk_entry> units_;
    mcap::buffer compressed_, records_;
};

}  // namespace carousel::stages
