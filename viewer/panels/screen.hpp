#pragma once
// The window's whole content: the top line, the panels, the help, and the choice of the run to watch. Draws
// from the model alone, so that tests can draw any model in any window.

#include <imgui.h>

#include <string>

#include "viewer/panels/layout.hpp"

namespace carousel::viewer {

class screen {
public:
    screen() : panels_(make_panels()) {}
    /// To be called between begin_frame() and ImGui::Render(). `window_text`: see window::description().
    void draw(model& m, picture_store& store, const std::string& window_text);
    void on_key(model& m, const key_press& k);

private:
    void draw_head(model& m, const std::string& window_text, ImVec2 low, ImVec2 high);
    void draw_choice(model& m, ImVec2 low, ImVec2 high);
    void draw_chooser(model& m);
    static void draw_help();

    std::vector<placed_panel> panels_;
    layout layout_;
    std::string attached_run_;
};

}  // namespace carousel::viewer
