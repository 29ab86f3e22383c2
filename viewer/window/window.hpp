#pragma once
// The interface of the surfaces on which the viewer draws. There are three implementations: a GLFW window, an
// offscreen GL surface (EGL without a display), and a null window (the panels are laid out, but not drawn).
// Code that uses this interface is the same for all three. Main thread only. An ImGui context is current in
// every call; the GL context, if any, is current from make_* to the destructor.

#include <memory>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "viewer/watch/tap.hpp"

struct ImDrawData;

namespace carousel::viewer {

/// A key is represented by its upper-case ASCII character, or by one of these codes.
namespace key {
inline constexpr int escape = 256, left = 257, right = 258, up = 259, down = 260, f1 = 261, f12 = 272;
}
struct key_press {
    int key = 0;
    bool ctrl = false, shift = false;
};

/// The keys that begin a search in the events: Ctrl+F and /.
[[nodiscard]] constexpr bool is_search_key(const key_press& k) noexcept {
    return k.ctrl ? !k.shift && k.key == 'F' : !k.shift && k.key == '/';
}

struct window_options {
    i32 width = 1920, height = 1080;  ///< the window's size: for GLFW in screen units, for the other surfaces
                                      ///< in pixels
    std::string title = "Carousel";
};

class window {
public:
    virtual ~window() = default;
    /// Takes the input since the last call and begins an ImGui frame. Returns false if the user has closed
    /// the window.
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
    /// Waits until the next frame is due, that is, until `every_ns` after the last frame. User input may end
    /// a long wait earlier.
    virtual void pace(u64 every_ns);
    /// Returns the window's size in screen units, to be stored between runs.
    virtual void size(i32& width, i32& height) const = 0;
    /// True if the window is not visible (minimised), so that it need not be drawn at full rate.
    [[nodiscard]] virtual bool hidden() const noexcept { return false; }
    /// Returns the number of painted pixels divided by the number of pixels of all frames (on a software GL,
    /// unchanged pixels are not painted).
    [[nodiscard]] virtual f64 painted_share() const noexcept { return 1; }

protected:
    u64 next_ns_ = 0;  ///< time when the next frame is due
};

/// Each function throws device_error if there is no display or no GL 3.3; the message names the alternatives.
[[nodiscard]] std::unique_ptr<window> make_glfw_window(const window_options& options);
[[nodiscard]] std::unique_ptr<window> make_offscreen_window(const window_options& options);
[[nodiscard]] std::unique_ptr<window> make_null_window(const window_options& options);

// Creates the interop of this build: with CUDA, that of window/cuda; without CUDA, there is none. The interop
// needs GL, so only a window uses it.

/// If interop is not available, returns null and sets `why_not` to the reason ("GL runs on llvmpipe, not on
/// the ring's GPU").
[[nodiscard]] std::unique_ptr<interop> make_interop(const device::device_id& device, u64 bytes,
                                                    std::string& why_not);

}  // namespace carousel::viewer
