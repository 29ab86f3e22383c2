#pragma once
// The headless sink: hashes every picture where it lies, for the run's ledger (<carousel/hash.hpp>), and
// takes it off the device only when it is wanted: as a file or in a film. Input: carousel.image.rgba8.
// Output: none. Settings:
//   out       pattern of the files' names, relative to the run's output directory, or absolute; "" or
//             "none": no pictures ["frame_%05d.png"]. The extension selects the format: .png, .jpg, .jpeg,
//             .rgba or .npy (picture_format.hpp). A name that ends in .mp4 ("%%" is a percent sign) makes one
//             film of all pictures instead (film_file.hpp says what becomes of it when this display is
//             killed); a tombstone frame's place in it shows the picture before.
//   keep      leaves the pictures of the newest so many frames; 0: all [0]. A film keeps all its frames.
//   film_fps  frames a second of the film [the pipeline's fps, or 30]
//   finish_threads  so many threads pack pictures, each another one or parts of one; 0: one a core [0]
//             A film is encoded in order, by one thread and the encoder's own; hashes alone need no more
//   delay_ms  sleeps this long for each frame, one at a time: a slow sink, for tests [0]
// What a crash leaves: each picture whole or absent. Pictures of frames behind the last one that was
// delivered may be there, since several are packed at once. Delivering a frame again replaces its picture by
// the same.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <carousel/hash.hpp>
#include <carousel/stage.hpp>
#include "stages/display/film.hpp"
#include "stages/display/kept_pictures.hpp"
#include "stages/display/picture_name.hpp"
#include "stages/sdk/formats.hpp"

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
    std::optional<picture_name> pictures_;  ///< none: hashes only, or a film
    u64 keep_ = 0;                          ///< the newest so many pictures; 0: all
    std::unique_ptr<kept_pictures> kept_;
    std::string film_name_;  ///< "": no film
    f64 film_fps_ = 30;
    std::unique_ptr<film> film_;
    bool relative_ = true;  ///< `out` is
    std::string folder_;    ///< the run's output directory, for a relative pattern
    i64 delay_ms_ = 0;
    std::unique_ptr<plane_hasher> hasher_;
    /// one picture each, in memory that the CPU can read; none unless pictures are wanted
    std::vector<std::unique_ptr<device::mapping>> lanes_;
    /// on the CPU pictures are packed where they lie: the frame is ours until its commit, and what is packed
    /// of one that isn't any more takes nobody's place (frame::is_owned)
    bool in_place_ = false;
};

}  // namespace carousel::stages
