#pragma once
// The interface of what the viewer draws on. There are three implementations: a GLFW window, an offscreen GL
// surface (EGL without a display), and a null window (the interface is laid out and discarded). All code
// above this interface is the same for each of them.
// Main thread only. An ImGui context is current in every call; the GL context, if any, is current from make_*
// to the destructor.

#include <memory>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "viewer/watch/tap.hpp"

struct ImDrawData;

namespace carousel::viewer {

/// A key as its upper-case ASCII character, or one of these codes.
namespace key {
inline constexpr int escape = 256, left = 257, right = 258, up = 259, down = 260, f1 = 261, f12 = 272;
}
struct key_press {
    int key = 0;
    bool ctrl = false, shift = false;
};

struct window_options {
    i32 width = 1920, height = 1080;  ///< for GLFW: screen units; otherwise pixels
    std::string title = "Carousel";
};

class window {
public:
    virtual ~window() = default;
    /// Takes the input since the last call and begins an ImGui frame. Returns false if the user closes the
    /// window.
    virtual bool begin_frame() = 0;
    /// Draws and shows the output of ImGui::Render(), which it may modify. `picture_version` identifies the
    /// contents of the textures.
    virtual void end_frame(ImDrawData* data, u64 picture_version) = 0;
    [[nodiscard]] virtual std::vector<key_press> take_keys() = 0;
    [[nodiscard]] virtual bool has_gl() const noexcept = 0;
    /// Pixels per interface unit: 2 on a HiDPI display.
    [[nodiscard]] virtual f32 scale() const noexcept = 0;
    /// Returns the last frame as RGBA8, top row first; empty if there are no pixels.
    [[nodiscard]] virtual std::vector<u8> read_pixels(u32& width, u32& height) = 0;
    [[nodiscard]] virtual std::string description() const = 0;
    virtual void set_title(const std::string&) {}
    /// Waits until the next frame is due, `every_ns` after the last one; input may end a long wait early.
    virtual void pace(u64 every_ns);
    /// Screen units, to be stored between runs.
    virtual void size(i32& width, i32& height) const = 0;
    /// True if the window is not visible (minimised), so that it need not be drawn at full rate.
    [[nodiscard]] virtual bool hidden() const noexcept { return false; }
    /// The share of the pixels of all frames that was painted (on a software GL, unchanged pixels are not
    /// painted).
    [[nodiscard]] virtual f64 painted_share() const noexcept { return 1; }

protected:
    u64 next_ns_ = 0;  ///< time when the next frame is due
};

/// Each function throws device_error (no display, no GL 3.3) with the alternatives in its message.
[[nodiscard]] std::unique_ptr<window> make_glfw_window(const window_options& options);
[[nodiscard]] std::unique_ptr<window> make_offscreen_window(const window_options& options);
[[nodiscard]] std::unique_ptr<window> make_null_window(const window_options& options);

// Makes the interop of this build: window/cuda with CUDA, none without. The interop needs GL, so only a
// window uses it.

/// Returns null if interop is not available, with the reason in `why_not` ("GL runs on llvmpipe, not on the
/// ring's GPU").
[[nodiscard]] std::unique_ptr<interop> make_interop(const device::device_id& device, u64 bytes,
                                                    std::string& why_not);

}  // namespace carousel::viewer
