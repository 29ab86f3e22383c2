#pragma once
// Determines which parts of a window must be drawn again. A software GL takes time for every pixel, and few
// pixels of a window change from one frame to the next. This class compares ImGui's draw data with that of
// the last drawing, tile by tile; the panels need not report changes.
//
// Requires a window that keeps its pixels (a single buffer): see window_glfw.cpp. Contains no GL. Main thread
// only.

#include <vector>

#include "core/types.hpp"

struct ImDrawData;

namespace carousel::viewer {

/// A box in pixels, counted from the window's upper left corner; right and bottom are exclusive.
struct pixel_box {
    i32 left = 0, top = 0, right = 0, bottom = 0;
    bool operator==(const pixel_box&) const = default;
};

class redraw {
public:
    static constexpr i32 tile = 64;  ///< side of a tile in pixels; the tiles of llvmpipe have the same size
                                     ///< and origin
    static constexpr std::size_t most_boxes = 24;

    /// Returns disjoint boxes that contain all differences from the last drawing. The caller must draw these
    /// boxes: they are recorded as drawn. `picture_version` identifies the contents of every texture except
    /// the font's. If `everything` is false, only tiles that show such a texture, or showed one before, are
    /// checked; the other tiles are checked in the next call with `everything` true.
    [[nodiscard]] std::vector<pixel_box> changed(const ImDrawData& data, u64 picture_version,
                                                 bool everything);

    /// Discards the record of the last drawing, so that the next changed() returns the whole window.
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
    std::vector<tile_state> drawn_;  ///< empty: unknown
};

/// Removes all triangles from the draw data that do not touch the boxes, and clips the others to the boxes.
/// The backend can draw the result as usual.
void restrict_to(ImDrawData& data, const std::vector<pixel_box>& boxes);

}  // namespace carousel::viewer
