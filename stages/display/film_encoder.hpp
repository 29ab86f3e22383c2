#pragma once
// Encodes pictures into the parts of a film: H.264 in MP4, one fragment per frame. The encoder is in a
// separate module (libcarousel-film.so, built if ffmpeg's libraries are found). Only a display that makes a
// film loads the module, because ffmpeg's libraries load a hundred others, and a display that restarts after
// a kill should not wait for them.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::stages {

class film_encoder {
public:
    virtual ~film_encoder() = default;
    /// Returns the beginning of the file; it is identical for all films of the same size, rate and
    /// libraries.
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

/// Type of the module's only function. On failure the function returns null and stores the reason in `why`.
using film_encoder_maker = film_encoder* (*)(u32 width, u32 height, f64 fps, std::string& why);
inline constexpr const char* film_encoder_symbol = "carousel_make_film_encoder";

// A film's file as a sequence of boxes (ISO/IEC 14496-12): a heading (ftyp, moov), then one fragment (moof,
// mdat) per frame. A fragment's decode time (tfdt) is its frame number times film_ticks, so the frames in a
// film can be determined from the file alone, even after its writer was killed during a write.

inline constexpr u64 film_ticks = 1000;  ///< duration of a frame in units of the film's time scale

/// Returns the number of bytes up to the first fragment, or to the end of the file. Throws output_error.
[[nodiscard]] u64 heading_bytes_of(int fd);

/// The data that a killed writer has left after the heading.
struct film_contents {
    u64 bytes = 0;            ///< number of bytes up to the end of the last complete fragment
    std::optional<u64> last;  ///< the highest frame in the file; empty: none yet
    u64 frames = 0;
};
/// Reads from `heading_bytes` to the first incomplete fragment. Throws output_error if the file cannot be
/// read.
[[nodiscard]] film_contents read_film(int fd, u64 heading_bytes);

/// Stamps one fragment with its frame's number, overwriting the muxer's value. Returns false if the bytes are
/// not a fragment of one frame.
[[nodiscard]] bool stamp_fragment(std::span<u8> fragment, u64 frame_number) noexcept;

}  // namespace carousel::stages
