#pragma once
// Stores the last complete frame on the display side. The GL store keeps a texture and draws it through a
// small shader (channel toggles, exposure) into a second texture, which the interface shows. The null store
// stores nothing.

#include <memory>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::viewer {

struct picture_view {
    bool red = true, green = true, blue = true, alpha = false;
    f32 exposure_stops = 0;  ///< doublings of linear light
    bool small = false;      ///< the picture is drawn at less than half its size
    /// True if the view shows the frame's colours without changes.
    [[nodiscard]] bool is_plain() const noexcept {
        return red && green && blue && !alpha && exposure_stops == 0;
    }
    bool operator==(const picture_view&) const = default;
};

class picture_store {
public:
    virtual ~picture_store() = default;
    [[nodiscard]] virtual bool has_gl() const noexcept = 0;
    /// Allocates textures for pictures of this size. Returns "", or the error if the size is larger than the
    /// GL allows.
    virtual std::string resize(u32 width, u32 height) = 0;
    /// `pixels`: RGBA8, dense, top row first, of the size passed to resize().
    virtual void upload(const std::byte* pixels) = 0;
    /// Returns the texture that interop fills, and marks it as changed. Returns 0 if there is none.
    virtual unsigned raw_texture() = 0;
    /// Returns the texture to show, in ImGui's type; null if there is none.
    virtual void* shown(const picture_view& view) = 0;
    /// Returns a texture with a second picture, in ImGui's type: RGBA8, dense, top row first. The pixels are
    /// uploaded if `picture` differs from that of the last call. Null if there is no GL, or if the picture is
    /// larger than the GL allows.
    virtual void* still(const std::byte* pixels, u32 width, u32 height, u64 picture) = 0;
    /// Increases whenever the contents of a texture to show change.
    [[nodiscard]] virtual u64 version() const noexcept = 0;
    /// Reads one pixel of the unmodified frame, as RGBA. Returns false if there is no frame.
    virtual bool read_pixel(u32 x, u32 y, u8 (&rgba)[4]) = 0;
    /// Returns the unmodified frame as RGBA8, in the texture's row order; empty if there is no frame.
    virtual std::vector<u8> read_back() = 0;
};

[[nodiscard]] std::unique_ptr<picture_store> make_null_store();
/// A GL context must be current in this call and in every later call. Throws device_error if the shader does
/// not compile or link.
[[nodiscard]] std::unique_ptr<picture_store> make_gl_store();

}  // namespace carousel::viewer
