#pragma once
// The description at the beginning of a recording: the rings with their formats, the schema of the
// parameters, and the offset of the recorded times.

#include <memory>
#include <string>
#include <vector>

#include "frame/frame_format.hpp"
#include "parameters/parameter_schema.hpp"
#include "shm/fd_socket.hpp"
#include "stages/recording/frame_message.hpp"
#include "stages/recording/mcap/any_file.hpp"
#include "stages/recording/mcap/scan.hpp"

namespace carousel::stages {

struct recorded_ring {
    std::string stage;
    ring::frame_format format;  ///< laid out
    [[nodiscard]] bool operator==(const recorded_ring&) const = default;
};

struct recording {
    std::string id;     ///< unique id of the recording, by which the next incarnation recognizes its own file
    i64 offset_ns = 0;  ///< difference between CLOCK_MONOTONIC and the wall clock, for the whole recording
    std::vector<recorded_ring> rings;
    ring::parameter_schema parameters;  ///< empty: the pipeline had no parameters
    /// Greatest width of the JPEG pictures that are written in addition to each picture, for other programs;
    /// 0: none are written.
    u32 jpeg_width = 0;
    /// True for an MCAP file of another program: its rings are the channels with pictures (raw_image.hpp).
    bool is_external = false;
};

/// The channel of rings[k] is k + 1. The channels of the JPEG pictures, in the order of their rings, follow.
[[nodiscard]] mcap::preamble preamble_of(const recording& r);
/// True if another program has written a file with that preamble.
[[nodiscard]] bool is_external(const mcap::preamble& p);
/// Throws a config_error that names `file` if another program or version has written the recording, or if
/// the recording is damaged.
[[nodiscard]] recording recording_from(const mcap::preamble& p, const std::string& file);

// Reads the frames of one ring of a recording. A frame is identified by its place in the recording.

/// Opens a recording. Throws config_error that names the key "file" of the stage.
[[nodiscard]] shm::unique_fd open_recording(const std::string& path);
/// Reads the description in the preamble; of an external file, the first message of each channel. Throws
/// config_error that names the file.
[[nodiscard]] recording describe_recording(const std::string& path);

/// The pictures of one channel of an external file. Frame n is the channel's message n; its metadata "pts_ns"
/// is the time since the first one.
class external_pictures {
public:
    external_pictures(int fd, const std::string& path, const std::string& topic);
    [[nodiscard]] u64 size() const noexcept { return places_.size(); }
    /// Throws format_error.
    frame_facts read(u64 place, const ring::frame_format& format, std::byte* slot);

private:
    mcap::any_contents contents_;
    std::vector<mcap::message_place> places_;
    mcap::message_reader reader_;
};

class ring_reader {
public:
    ring_reader() = default;
    /// Finds the frames of about.rings[ring], and logs damaged or missing ones. Throws config_error if the
    /// file is being recorded or can't be read.
    ring_reader(std::string path, const recording& about, std::size_t ring);

    /// The number of places. A damaged frame also has a place, so the frames after it keep their places.
    [[nodiscard]] u64 size() const noexcept { return external_ ? external_->size() : units_.size(); }
    /// Reads the frame at `place` (below size()) into a slot of the ring's format. If the frame is damaged
    /// or missing, throws error with exit_code::stage_exception; its message names the place and the file.
    frame_facts read(u64 place, std::byte* slot);

private:
    std::string path_;
    ring::frame_format format_;
    u16 channel_ = 0;
    shm::unique_fd fd_;
    std::vector<mcap::chunk_entry> units_;
    mcap::buffer compressed_, records_;
    std::unique_ptr<external_pictures> external_;  ///< null: it is a recording of Carousel
};

}  // namespace carousel::stages
