#pragma once
// Where the panels stand: two columns with movable borders, or, in a small window, one panel at a time behind tabs.

#include <imgui.h>

#include <vector>

#include "viewer/panel.hpp"

namespace carousel::viewer {

class layout {
public:
    /// Draws all panels into the rectangle.
    void draw(std::vector<placed_panel>& panels, model& m, picture_store& store, ImVec2 low, ImVec2 high);

private:
    void draw_columns(std::vector<placed_panel>& panels, model& m, picture_store& store, ImVec2 low, ImVec2 high);
    void draw_tabs(std::vector<placed_panel>& panels, model& m, picture_store& store, ImVec2 low, ImVec2 high);
};

/// One panel in its rectangle: title line with its menu, then its content.
void draw_panel(panel& p, model& m, picture_store& store, ImVec2 low, ImVec2 high);

}  // namespace carousel::viewer
