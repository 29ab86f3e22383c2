#pragma once
// The headless sink: hashes every picture in place, for the run's ledger (<carousel/hash.hpp>), and copies it
// off the device only if it is needed for a file or a film. Input: carousel.image.rgba8. Output: none.
// Settings:
//   out       pattern of the file names, relative to the run's output directory, or absolute; "" or "none":
//             no pictures ["frame_%05d.png"]. The extension selects the format: .png, .jpg, .jpeg, .rgba or
//             .npy (picture_file.hpp). A name that ends in .mp4 ("%%" is a percent sign) makes one film of
//             all pictures instead (encoded_file.hpp describes what a killed display leaves); a tombstone
//             frame's place in it shows the previous picture.
//   keep      keeps the pictures of the newest N frames; 0: all [0]. A film keeps all its frames.
//   film_fps  frames per second of the film [the pipeline's fps, or 30]
//   finish_threads  number of threads that pack pictures, either different pictures or parts of one; 0: one
//             per core [0]. A film is encoded in order, by one thread and the encoder's own threads. If only
//             hashes are computed, no further threads are needed.
//   delay_ms  sleeps this long for each frame, one frame at a time: a slow sink, for tests [0]
// What a crash leaves: each picture is complete or absent. Pictures of frames after the last delivered one
// may exist, since several are packed concurrently. A frame that is delivered again replaces its picture by
// an identical one.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <carousel/hash.hpp>
#include <carousel/stage.hpp>
#include "stages/display/picture_sequence.hpp"
#include "stages/encode/encoded_output.hpp"
#include "stages/sdk/payload.hpp"

namespace carousel::stages {

class display : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    void process(frame& f) override;
    [[nodiscard]] bool commits_on_host() const override { return true; }
    void finish(frame& f) override;

private:
    [[nodiscard]] bool wants_pictures() const noexcept {
        return pictures_.has_value() || !film_name_.empty();
    }

    std::string name_;
    image_size size_;
    std::optional<picture_name> pictures_;  ///< empty if the display only computes hashes, or makes a film
    u64 keep_ = 0;                          ///< number of newest pictures to keep; 0: all
    std::unique_ptr<kept_pictures> kept_;
    std::string film_name_;  ///< "": no film
    f64 film_fps_ = 30;
    std::unique_ptr<encoded_output> film_;
    bool relative_ = true;  ///< `out` is relative
    std::string folder_;    ///< the run's output directory, to which a relative pattern refers
    i64 delay_ms_ = 0;
    std::unique_ptr<plane_hasher> hasher_;
    /// one picture per lane, in memory that the CPU can read; empty if no pictures are written
    std::vector<std::unique_ptr<device::mapping>> lanes_;
    /// True on the CPU unless a film is made. If it is true, pictures are packed directly from the frame.
    /// This is possible because the frame belongs to this process until its commit. If the frame no longer
    /// belongs to this process, the picture does not replace a file (frame::is_owned).
    bool in_place_ = false;
};

}  // namespace carousel::stages
