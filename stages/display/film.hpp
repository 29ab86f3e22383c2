#pragma once
// A film of the pictures that a display delivers. Declares two classes: the film's file, and the film, which
// consists of the file and an encoder.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/output_file.hpp"
#include "core/types.hpp"
#include "shm/fd_socket.hpp"
#include "stages/display/film_encoder.hpp"
#include "stages/sdk/payload.hpp"

namespace carousel::stages {

// The file of a film, which continues to exist when its writers die. The first incarnation of a display
// creates it; each later one continues after the last complete fragment, so that a killed display leaves one
// playable file that has every frame once:
//   killed in the middle of a fragment:      the successor removes the incomplete fragment, and the frame is
//                                            delivered again
//   killed between fragment and commit:      the frame is delivered again, but not written again, because the
//                                            file has it
//   kill -9 of all processes:                complete fragments can be played (players skip the cut one)
// If the path is a symbolic link, its target is written, and the link is kept. If the path is a FIFO or a
// device (for a player that reads during the run), each fragment is written as soon as it is made. If a
// display was killed while it wrote a fragment, that fragment stays incomplete in the stream, and the
// successor writes the whole frame after it. If the predecessor has not ended yet, for example because a GPU
// takes time to release it, the successor waits for the file's lock, which is released when the predecessor
// ends. If a successor's heading differs (the program or ffmpeg's libraries were replaced meanwhile), its
// frames go to NAME.part2.mp4 and so on. A small file in the run's runtime directory, created with each part,
// records which process is the first one and which part is being written.

class film_file {
public:
    /// `note`: path of the small file. Throws output_error with the failure, the path and a remedy.
    film_file(std::string path, std::string note, std::span<const u8> heading);

    /// True if the film has that frame or a later one; frames arrive in order.
    [[nodiscard]] bool contains(u64 frame_number) const noexcept { return last_ && frame_number <= *last_; }
    /// Throws output_error (disk full).
    void append(u64 frame_number, std::span<const u8> fragment);
    /// The part being written.
    [[nodiscard]] const std::string& path() const noexcept { return part_; }

private:
    [[nodiscard]] u32 noted_part() const;
    void note_part(u32 part) const;
    void begin_part(u32 part, std::span<const u8> heading);
    [[nodiscard]] bool continue_part(u32 part, std::span<const u8> heading);
    void open_locked(u32 part, int flags);
    void begin_stream(const output_target& to, std::span<const u8> heading);
    void write_at_end(std::span<const u8> bytes);
    [[noreturn]] void fail(const char* what, int error_number) const;

    std::string path_, note_, part_;
    shm::unique_fd file_;
    bool is_stream_ = false;  ///< a FIFO or a device
    u64 bytes_ = 0;
    std::optional<u64> last_;
};

// A film of the pictures that a display delivers: its encoder and its file.

class film {
public:
    /// `note`: see film_file. Throws config_error, output_error.
    film(const std::string& path, const std::string& note, image_size size, f64 fps)
        : encoder_(make_film_encoder(size.width, size.height, fps)), file_(path, note, encoder_->heading()) {}

    /// Called before the frame's commit. Does nothing for a frame that the film already contains. Throws
    /// output_error. After a full disk, write() is called again with the same frame; in this second call the
    /// encoder already has the frame and must not get it twice.
    void write(u64 frame_number, std::span<const std::byte> rgba) {
        if (file_.contains(frame_number)) return;
        if (encoded_ != frame_number) fragment_ = encoder_->encode(frame_number, rgba);
        encoded_ = frame_number;
        file_.append(frame_number, fragment_);
    }

private:
    std::optional<u64> encoded_;
    std::vector<u8> fragment_;
    std::unique_ptr<film_encoder> encoder_;
    film_file file_;
};

}  // namespace carousel::stages
