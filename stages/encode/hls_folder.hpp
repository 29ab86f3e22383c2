#pragma once
// A folder for HTTP Live Streaming (RFC 8216): a playlist NAME.m3u8, segments NAME_FRAMENUMBER.m4s of
// fragments, and a heading NAME_init_HASH.mp4. The number in a segment's name is that of its first frame.
//
// The playlist is replaced atomically and lists complete segments only. The segment being written is the only
// one after the last listed segment. What a crash leaves: a successor removes the incomplete fragment at the
// end of that segment and continues in it. If the process is killed after the last commit of the run, the
// last segment is in the folder, but not in the playlist.

#include <optional>
#include <string>
#include <vector>

#include "stages/encode/encoded_file.hpp"

namespace carousel::stages {

class hls_folder final : public encoded_sink {
public:
    struct rules {
        f64 fps = 30;
        u64 segment_frames = 60;  ///< a segment ends before a key frame of another multiple of this number
        u32 keep = 0;             ///< number of newest segments that are kept; 0: all
    };
    /// `note`: as for encoded_file. The first incarnation removes the playlist and the segments of an earlier
    /// run. Throws output_error.
    hls_folder(const std::string& playlist, std::string note, std::span<const u8> heading, const rules& by);

    [[nodiscard]] bool contains(u64 frame_number) const noexcept override {
        return last_ && frame_number <= *last_;
    }
    void append(u64 frame_number, const encoded_frame& f) override;
    void close() override;

private:
    struct segment {
        u64 first = 0, end = 0;  ///< numbers of its first frame and of the frame after its last one
        std::string heading;     ///< name of its heading
    };
    [[nodiscard]] std::string segment_name(u64 first) const;
    [[nodiscard]] std::string path_of(const std::string& name) const { return folder_ + "/" + name; }
    [[nodiscard]] std::optional<u64> number_of(const std::string& name) const;
    void begin(std::span<const u8> heading);
    void continue_after_predecessor();
    void read_playlist();
    void write_heading(std::span<const u8> heading);
    void finish_segment(u64 end);
    void write_playlist(const std::vector<segment>& listed, u64 removed, bool ended);
    void open_segment(u64 first, int flags);
    [[noreturn]] void fail(const char* what, const std::string& path, int error_number) const;

    std::string playlist_, folder_, name_, note_, heading_;
    rules by_;
    std::vector<segment> listed_;
    u64 removed_ = 0;  ///< number of segments that were listed earlier
    std::optional<segment> current_;
    shm::unique_fd lock_, file_;
    u64 bytes_ = 0;
    std::optional<u64> last_;
    bool ended_ = false;
};

}  // namespace carousel::stages
