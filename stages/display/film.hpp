#pragma once
// A film of the pictures that a display delivers: its encoder and its file.

#include "stages/display/film_encoder.hpp"
#include "stages/display/film_file.hpp"
#include "stages/sdk/payload.hpp"

namespace carousel::stages {

class film {
public:
    /// `note`: see film_file. Throws config_error, output_error.
    film(const std::string& path, const std::string& note, image_size size, f64 fps)
        : encoder_(make_film_encoder(size.width, size.height, fps)), file_(path, note, encoder_->heading()) {}

    /// Called before the frame's commit. Does nothing for a frame that the film already contains. Throws
    /// output_error; after a full disk it is called again with the same frame, which has already been passed
    /// to the encoder and must not be passed to it again.
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
