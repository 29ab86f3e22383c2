#pragma once
// Where the last whole frame lives on the display's side. The GL store keeps a texture and draws it through a
// small shader (channel toggles, exposure) into another one that the interface shows; the null store only
// remembers the size.

#include <memory>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::viewer {

struct picture_view {
    bool red = true, green = true, blue = true, alpha = false;
    f32 exposure_stops = 0;  ///< doublings of linear light
    bool small = false;      ///< drawn at less than half its size
    /// The frame's own colours.
    [[nodiscard]] bool is_plain() const noexcept {
        return red && green && blue && !alpha && exposure_stops == 0;
    }
    bool operator==(const picture_view&) const = default;
};

class picture_store {
public:
    virtual ~picture_store() = default;
    [[nodiscard]] virtual bool has_gl() const noexcept = 0;
    /// Makes room for pictures of this size. "" or what went wrong (larger than the GL allows).
    virtual std::string resize(u32 width, u32 height) = 0;
    /// RGBA8, dense, top row first, of the size given to resize().
    virtual void upload(const std::byte* pixels) = 0;
    /// The texture that interop fills; marks it as changed. 0: there is none.
    virtual unsigned raw_texture() = 0;
    /// The texture to show, for ImGui; null: none.
    virtual void* shown(const picture_view& view) = 0;
    /// Another number whenever the texture to show has other contents.
    [[nodiscard]] virtual u64 version() const noexcept = 0;
    /// One pixel of the unchanged frame, RGBA; false: there is none.
    virtual bool read_pixel(u32 x, u32 y, u8 (&rgba)[4]) = 0;
    /// The unchanged frame as it lies in the texture; empty when there is none.
    virtual std::vector<u8> read_back() = 0;
};

[[nodiscard]] std::unique_ptr<picture_store> make_null_store();
/// A GL context must be current, now and in every later call. Throws device_error when the shader doesn't
/// compile.
[[nodiscard]] std::unique_ptr<picture_store> make_gl_store();

}  // namespace carousel::viewer
