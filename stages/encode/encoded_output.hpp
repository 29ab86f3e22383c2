#pragma once
// Pictures to a compressed file, folder or stream: an encoder, and the place for its frames.

#include <memory>
#include <optional>
#include <string>

#include "stages/encode/encoded_file.hpp"
#include "stages/encode/encoder.hpp"

namespace carousel::stages {

/// Sets `format` and `network` by the URL: the ending of a file name, or the scheme; file:// is removed from
/// the URL. A non-empty `name` (mp4, mkv, hls, mpegts, rtsp, flv) is used instead of the ending. Throws
/// config_error, also for a container of files at a network URL.
void set_container(encode_settings& to, const std::string& name);

/// One encoded output. One thread.
class encoded_output {
public:
    /// Creates the folder, loads the encoder, opens or connects the output. `note`: path of a small file that
    /// continues to exist when this process is killed, by which a successor continues the output; without it
    /// the output begins again. Throws config_error, output_error.
    encoded_output(const encode_settings& with, const std::string& note);

    /// Called before the frame's commit. Does nothing for a frame that the output already has. Throws
    /// output_error. After a full disk, write() is called again with the same frame; in this second call the
    /// encoder already has the frame and must not get it twice.
    void write(u64 frame_number, const picture_planes& picture, u64 time_ns = 0);
    /// True if the output gets a frame again after a kill: a network output, a FIFO, a device.
    [[nodiscard]] bool repeats_frames() const noexcept { return !sink_ || sink_->is_stream(); }
    /// The end of the stream: completes what a player expects at the end. May be called again after a full
    /// disk. Throws output_error.
    void close();

private:
    u32 gop_;
    std::unique_ptr<encoder> encoder_;
    std::unique_ptr<encoded_sink> sink_;  ///< null for a network output
    std::optional<u64> encoded_;
    encoded_frame frame_;
};

}  // namespace carousel::stages
