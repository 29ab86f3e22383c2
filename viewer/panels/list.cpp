#include "viewer/panels/list.hpp"

namespace carousel::viewer {

std::vector<placed_panel> make_panels() {
    std::vector<placed_panel> all;
    all.push_back({place::image, make_image_panel()});
    all.push_back({place::scene, make_scene_panel()});
    all.push_back({place::timeline, make_timeline_panel()});
    all.push_back({place::stages, make_stages_panel()});
    all.push_back({place::rings, make_rings_panel()});
    all.push_back({place::plots, make_plots_panel()});
    all.push_back({place::events, make_events_panel()});
    all.push_back({place::events, make_depth_panel()});
    return all;
}

}  // namespace carousel::viewer
