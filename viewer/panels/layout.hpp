#pragma once
// Where the panels stand: two columns with movable borders, or, in a small window, one panel at a time behind
// tabs.

#include <imgui.h>

#include <array>
#include <vector>

#include "viewer/panels/panel.hpp"

namespace carousel::viewer {

/// Lower ends of stages, rings, plots in the right column, shares of its height.
using right_ends = std::array<f32, 3>;

class layout {
public:
    /// Draws all panels into the rectangle.
    void draw(std::vector<placed_panel>& panels, model& m, picture_store& store, ImVec2 low, ImVec2 high);

private:
    [[nodiscard]] static f32 left_end_of(std::vector<placed_panel>& panels, const model& m, f32 height);
    [[nodiscard]] static right_ends ends_of(std::vector<placed_panel>& panels, const model& m, f32 height);
    void draw_columns(std::vector<placed_panel>& panels, model& m, picture_store& store, ImVec2 low,
                      ImVec2 high);
    void draw_tabs(std::vector<placed_panel>& panels, model& m, picture_store& store, ImVec2 low,
                   ImVec2 high);
};

/// Height of a panel's title line and edges.
[[nodiscard]] f32 frame_height();
/// One panel in its rectangle: title line with its menu, then its content.
void draw_panel(panel& p, model& m, picture_store& store, ImVec2 low, ImVec2 high);

}  // namespace carousel::viewer
