#pragma once
// What the viewer keeps between runs: ~/.config/carousel/viewer.ini (or $XDG_CONFIG_HOME/carousel/). Written
// whole into a temporary file and renamed, so that a death in the middle of a write leaves the old settings.

#include <array>
#include <string>

#include "core/types.hpp"

namespace carousel::viewer {

struct settings {
    bool dark = true;
    f32 scale = 0;                    ///< of the whole interface; 0: what the display says
    i32 width = 1920, height = 1080;  ///< of the window, screen units
    f32 main_split = 0.46F;           ///< left column of the whole width
    f32 left_split = 0.60F;           ///< image of the left column's height
    f32 bottom_split = 0.34F;         ///< scene of the row below it
    std::array<f32, 3> right_splits = {0.19F, 0.46F, 0.80F};  ///< lower ends of stages, rings, plots
    f32 plot_span_s = 60;
    f32 timeline_ms = 200;  ///< width of the timeline
    bool operator==(const settings&) const = default;
};

[[nodiscard]] std::string settings_path();
/// What can't be read keeps its default; every value is put within its bounds.
[[nodiscard]] settings load_settings(const std::string& path);
/// "" or what went wrong.
[[nodiscard]] std::string save_settings(const std::string& path, const settings& s);

}  // namespace carousel::viewer
