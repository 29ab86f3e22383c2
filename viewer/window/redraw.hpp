#pragma once
// What of a window has to be drawn again. A software GL pays for every pixel, and of a window's pixels few
// change from one frame to the next: this compares what ImGui wants drawn with what was drawn, tile by tile,
// whatever panel it belongs to.
//
// Needs a window whose pixels stay (a single buffer): see window_glfw.cpp. No GL in here. The main thread
// only.

#include <vector>

#include "core/types.hpp"

struct ImDrawData;

namespace carousel::viewer {

/// Pixels from the window's upper left corner; right and bottom lie outside.
struct pixel_box {
    i32 left = 0, top = 0, right = 0, bottom = 0;
    bool operator==(const pixel_box&) const = default;
};

class redraw {
public:
    static constexpr i32 tile = 64;  ///< pixels; llvmpipe's own tiles have this size and the same corner
    static constexpr std::size_t most_boxes = 24;

    /// The disjoint boxes that differ from what was drawn last, and from now on count as drawn.
    /// `picture_version` stands for the contents of every texture but the font's. With `everything` false
    /// only tiles that have or had such a picture are looked at: the others wait for the next call that asks
    /// for all.
    [[nodiscard]] std::vector<pixel_box> changed(const ImDrawData& data, u64 picture_version,
                                                 bool everything);

    /// Nothing drawn so far counts: the next call of changed() names the whole window.
    void forget() noexcept { drawn_.clear(); }

private:
    struct tile_state {
        u64 content = 0;
        bool picture = false;
    };
    void scan(const ImDrawData& data, u64 picture_version);
    [[nodiscard]] std::vector<pixel_box> boxes_of(const std::vector<bool>& wanted) const;

    i32 width_ = 0, height_ = 0, columns_ = 0, rows_ = 0;
    std::vector<tile_state> now_;
    std::vector<tile_state> drawn_;  ///< empty: nothing is known
};

/// Leaves of the draw data the triangles that touch the boxes, clipped to them. The backend may then draw it
/// as any other.
void restrict_to(ImDrawData& data, const std::vector<pixel_box>& boxes);

}  // namespace carousel::viewer
