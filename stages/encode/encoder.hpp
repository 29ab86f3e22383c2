#pragma once
// Encodes pictures into a compressed stream. The encoder is in a separate module (libcarousel-film.so, built
// if ffmpeg's libraries are found). Only a process that encodes loads the module, because ffmpeg's libraries
// load a hundred others, and a display that restarts after a kill should not wait for them.

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"
#include "frame/image_format.hpp"

namespace carousel::stages {

/// The planes of a picture, dense; a plane that its format does not have is null.
struct picture_planes {
    std::array<const std::byte*, 2> at{};
};

enum class container : u8 { mp4, matroska, hls, mpegts, rtsp, flv };
[[nodiscard]] std::string_view name_of(container c) noexcept;

/// How to wait for a receiver or reader that takes no bytes.
struct receiver_wait {
    static constexpr u64 slice_ns = 200'000'000;
    f64 timeout_s = 10;                  ///< limit of each wait
    std::function<void()> on_wait = {};  ///< called after each slice of a wait; does not throw
};

/// What to encode, how, and where to.
struct encode_settings {
    std::string url = {};               ///< the path of a file, or the URL of a network output
    container format = container::mp4;  ///< see container_of()
    bool network = false;               ///< `url` is a network output, which ffmpeg's libraries write
    std::string codec = {};    ///< h264, hevc, av1, vp9, ffv1; "": H.264, or MPEG-4 without an encoder for it
    std::string encoder = {};  ///< the encoder's name in ffmpeg; "": the first one found for the codec
    u64 bitrate = 0;           ///< bits per second; 0: constant quality
    std::optional<i64> quality =
        {};  ///< the encoder's own scale, smaller is better; empty: the encoder's default here
    std::string preset = {};        ///< "": a fast one
    u32 gop = 60;                   ///< at most that many frames from one key frame to the next
    std::string pixel_format = {};  ///< ffmpeg's name; "": the codec's usual one
    std::map<std::string, std::string> options = {};  ///< more options of the encoder and the container
    f64 fps = 30;            ///< frame N is shown at N / fps, unless `own_times` is set
    bool own_times = false;  ///< each frame has its own time
    f64 timeout_s = 10;      ///< limit of each wait for a network output, a pipe, a FIFO
    f64 segment_s = 2;       ///< shortest duration of an HLS segment
    u32 keep = 0;            ///< number of HLS segments that are kept; 0: all
    ring::pixel_format pixels = ring::pixel_format::rgba8;  ///< of the pictures, as their colours
    ring::yuv_colours colours = {};
    u32 width = 0, height = 0;
    std::function<void()> on_wait = {};  ///< as in receiver_wait
};

/// One picture as compressed bytes.
struct encoded_frame {
    std::vector<u8> bytes;  ///< to be appended to the output; empty for a network output
    bool key = false;       ///< decoding can begin here
};

class encoder {
public:
    virtual ~encoder() = default;
    /// Returns the beginning of the output; it is identical for all outputs with the same settings and
    /// libraries.
    [[nodiscard]] virtual const std::vector<u8>& heading() const = 0;
    /// Encodes one picture. Frame numbers increase; gaps are allowed. `time_ns`: the frame's time, if the
    /// settings have `own_times`. `key`: the picture must become a key frame. In MP4 and Matroska the result
    /// is one complete unit (units.hpp). Throws output_error.
    [[nodiscard]] virtual encoded_frame encode(u64 frame_number, u64 time_ns, const picture_planes& picture,
                                               bool key) = 0;
    /// Ends a network output in an orderly way. Throws output_error.
    virtual void close() = 0;
};

/// Throws config_error, with the package to install, if the module is missing or does not load, and for
/// settings that no encoder of this build supports; output_error if a network output can't be reached within
/// settings.timeout_s.
[[nodiscard]] std::unique_ptr<encoder> make_encoder(const encode_settings& with);
/// Throws config_error unless an encoder with these settings exists and returns each picture at once. Encodes
/// a few small pictures to find that out, and opens no output.
void check_encoder(const encode_settings& with);
/// Returns "" if the module exists, otherwise the missing part and a remedy.
[[nodiscard]] std::string why_no_films();

/// The functions of the module. On failure a function returns null and stores the reason in `why`; `refused`
/// is set if the settings are wrong.
struct encoder_functions {
    encoder* (*make)(const encode_settings& with, std::string& why, bool& refused);
    bool (*check)(const encode_settings& with, std::string& why, bool& refused);
};
/// Type of the module's only symbol. The number in the name changes with this interface.
using encoder_module = const encoder_functions* (*)();
inline constexpr const char* encoder_module_symbol = "carousel_encoder_3";

}  // namespace carousel::stages
