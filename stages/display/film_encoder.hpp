#pragma once
// Pictures into the parts of a film: H.264 in MP4, one fragment a frame. Lives in a module of its own
// (libcarousel-film.so, built where ffmpeg's libraries are found), loaded by a display that makes a film and
// by no other: these libraries take a hundred others along, and a display that comes back after a kill shall
// not wait for them.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::stages {

class film_encoder {
public:
    virtual ~film_encoder() = default;
    /// What the file begins with; the same for the same size, rate and libraries.
    [[nodiscard]] virtual const std::vector<u8>& heading() const = 0;
    /// One picture, RGBA8, dense, as a whole fragment. Sequences grow; gaps are well. Throws output_error.
    [[nodiscard]] virtual std::vector<u8> encode(u64 frame_number, std::span<const std::byte> rgba) = 0;
};

/// `fps`: of the film. Throws config_error where the module is not there or doesn't load: what to install;
/// output_error where the libraries refuse the size.
[[nodiscard]] std::unique_ptr<film_encoder> make_film_encoder(u32 width, u32 height, f64 fps);
/// "" when there is the module, else what is missing and what to do.
[[nodiscard]] std::string why_no_films();

/// The module's one function: null and the reason in `why`.
using film_encoder_maker = film_encoder* (*)(u32 width, u32 height, f64 fps, std::string& why);
inline constexpr const char* film_encoder_symbol = "carousel_make_film_encoder";

}  // namespace carousel::stages
