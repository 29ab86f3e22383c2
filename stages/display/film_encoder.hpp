#pragma once
// Encodes pictures into the parts of a film: H.264 in MP4, one fragment per frame. It is in a separate module
// (libcarousel-film.so, built if ffmpeg's libraries are found) that is loaded only by a display which makes a
// film, because these libraries load a hundred others, and a display that restarts after a kill should not
// wait for them.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::stages {

class film_encoder {
public:
    virtual ~film_encoder() = default;
    /// The beginning of the file; identical if size, rate and libraries are the same.
    [[nodiscard]] virtual const std::vector<u8>& heading() const = 0;
    /// Encodes one picture (RGBA8, dense) as a complete fragment. Frame numbers increase; gaps are allowed.
    /// Throws output_error.
    [[nodiscard]] virtual std::vector<u8> encode(u64 frame_number, std::span<const std::byte> rgba) = 0;
};

/// `fps`: of the film. Throws config_error, with the package to install, if the module is missing or does not
/// load; output_error if the libraries refuse the size.
[[nodiscard]] std::unique_ptr<film_encoder> make_film_encoder(u32 width, u32 height, f64 fps);
/// Returns "" if the module exists, otherwise the missing part and a remedy.
[[nodiscard]] std::string why_no_films();

/// Type of the module's only function, which returns null and the reason in `why` on failure.
using film_encoder_maker = film_encoder* (*)(u32 width, u32 height, f64 fps, std::string& why);
inline constexpr const char* film_encoder_symbol = "carousel_make_film_encoder";

}  // namespace carousel::stages
