#pragma once
// One function per panel.

#include "viewer/panels/panel.hpp"

namespace carousel::viewer {

[[nodiscard]] std::unique_ptr<panel> make_image_panel();
[[nodiscard]] std::unique_ptr<panel> make_scene_panel();
[[nodiscard]] std::unique_ptr<panel> make_timeline_panel();
[[nodiscard]] std::unique_ptr<panel> make_stages_panel();
[[nodiscard]] std::unique_ptr<panel> make_rings_panel();
[[nodiscard]] std::unique_ptr<panel> make_plots_panel();
[[nodiscard]] std::unique_ptr<panel> make_events_panel();
[[nodiscard]] std::unique_ptr<panel> make_depth_panel();

}  // namespace carousel::viewer
