#pragma once
// One function and one row per panel.

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

struct panel_row {
    place where;
    std::unique_ptr<panel> (*make)();
};
/// The panels of one place are shown in this order.
inline constexpr panel_row panel_rows[] = {
    {place::image, make_image_panel},       {place::scene, make_scene_panel},
    {place::timeline, make_timeline_panel}, {place::stages, make_stages_panel},
    {place::rings, make_rings_panel},       {place::plots, make_plots_panel},
    {place::events, make_events_panel},     {place::events, make_depth_panel},
};

}  // namespace carousel::viewer
