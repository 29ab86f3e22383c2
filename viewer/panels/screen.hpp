#pragma once
// The window's whole content, and the arrangement of its panels.

#include <imgui.h>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/panels/panel.hpp"

namespace carousel::viewer {

// The arrangement of the panels: two columns with movable borders or, in a small window, one panel at a time
// under tabs. If several panels have the same place, only one of them is shown at a time. A click on the
// title of another panel of the place, or a key, shows the other panel instead.

/// The lower ends of the stages, rings and plots in the right column, as shares of the column's height.
using right_ends = std::array<f32, 3>;

class layout {
public:
    /// Draws all panels into the rectangle.
    void draw(std::vector<placed_panel>& panels, model& m, picture_store& store, ImVec2 low, ImVec2 high);
    /// For each place that several panels share, shows the next one of these panels.
    void bring_next() noexcept {
        for (u32& k : front_) ++k;
    }
    /// Shows the panel of that name instead of others at its place, or its tab in a small window.
    void show(const std::vector<placed_panel>& panels, std::string_view name) noexcept;

private:
    [[nodiscard]] static f32 left_end_of(std::vector<placed_panel>& panels, const model& m, f32 height);
    [[nodiscard]] static right_ends ends_of(std::vector<placed_panel>& panels, const model& m, f32 height);
    void draw_columns(std::vector<placed_panel>& panels, model& m, picture_store& store, ImVec2 low,
                      ImVec2 high);
    void draw_tabs(std::vector<placed_panel>& panels, model& m, picture_store& store, ImVec2 low,
                   ImVec2 high);

    std::array<u32, place_count> front_{};  ///< for each place, the index of the shown panel; it is taken
                                            ///< modulo the number of panels at this place
    const panel* requested_tab_ = nullptr;  ///< the panel whose tab is selected in the next frame
};

/// Returns the height of a panel's title line and edges in pixels.
[[nodiscard]] f32 frame_height();
/// Draws the shown panel of a place into its rectangle: first the title line with the panel's menu, then its
/// content. If panels share the place, their titles are side by side, and a click on one changes `front`.
void draw_panel(std::span<panel* const> sharing, u32& front, model& m, picture_store& store, ImVec2 low,
                ImVec2 high);

// The window's whole content: the top line, the panels, the help, and the choice of the run to watch. All
// data comes from the model, so that tests can draw any model in any window.

class screen {
public:
    screen() : panels_(make_panels()) {}
    /// This function must be called between begin_frame() and ImGui::Render(). `window_text`: see
    /// window::description().
    void draw(model& m, picture_store& store, const std::string& window_text);
    void on_key(model& m, const key_press& k);

private:
    void draw_head(model& m, const std::string& window_text, ImVec2 low, ImVec2 high);
    void draw_choice(model& m, ImVec2 low, ImVec2 high);
    void draw_chooser(model& m);
    static void draw_help(const model& m);

    std::vector<placed_panel> panels_;
    layout layout_;
    std::string attached_run_;
};

}  // namespace carousel::viewer
