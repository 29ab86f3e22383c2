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
    bool small = false;      ///< drawn at less than half its size
    /// True if the view shows the frame's own colours.
    [[nodiscard]] bool is_plain() const noexcept {
        return red && green && blue && !alpha && exposure_stops == 0;
    }
    bool operator==(const picture_view&) const = default;
};

class picture_store {
public:
    virtual ~picture_store() = default;
    [[nodiscard]] virtual bool has_gl() const noexcept = 0;
    /// Allocates textures for pictures of this size. Returns "" or the error (larger than the GL allows).
    virtual std::string resize(u32 width, u32 height) = 0;
    /// `pixels`: RGBA8, dense, top row first, of the size passed to resize().
    virtual void upload(const std::byte* pixels) = 0;
    /// The texture that interop fills; marks it as changed. 0: there is none.
    virtual unsigned raw_texture() = 0;
    /// The texture to show, for ImGui; null: there is none.
    virtual void* shown(const picture_view& view) = 0;
    /// Increases whenever the contents of the texture to show change.
    [[nodiscard]] virtual u64 version() const noexcept = 0;
    /// Reads one pixel of the unmodified frame, RGBA. Returns false if there is none.
    virtual bool read_pixel(u32 x, u32 y, u8 (&rgba)[4]) = 0;
    /// The unmodified frame, RGBA8, in the texture's row order; empty: there is none.
    virtual std::vector<u8> read_back() = 0;
};

[[nodiscard]] std::unique_ptr<picture_store> make_null_store();
/// Requires a current GL context, now and in every later call. Throws device_error if the shader does not
/// compile or link.
[[nodiscard]] std::unique_ptr<picture_store> make_gl_store();

}  // namespace carousel::viewer
