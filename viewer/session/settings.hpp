#pragma once
// The settings that the viewer stores between runs: ~/.config/carousel/viewer.ini (or
// $XDG_CONFIG_HOME/carousel/). The settings are written completely into a temporary file, which is then
// renamed, so a crash during a write leaves the old settings.

#include <array>
#include <string>

#include "core/types.hpp"

namespace carousel::viewer {

struct settings {
    bool dark = true;
    f32 scale = 0;                    ///< scale of the whole interface; 0: the display's own scale
    i32 width = 1920, height = 1080;  ///< size of the window in screen units
    f32 main_split = 0.46F;           ///< width of the left column, divided by the whole width
    f32 left_split = 0.60F;           ///< height of the image, divided by the height of the left column
    f32 bottom_split = 0.34F;         ///< width of the scene panel, divided by the width of the row below the
                                      ///< image
    std::array<f32, 3> right_splits = {0.19F, 0.46F, 0.80F};  ///< lower ends of stages, rings and plots
    f32 plot_span_s = 60;
    f32 timeline_ms = 200;  ///< width of the timeline
    bool operator==(const settings&) const = default;
};

[[nodiscard]] std::string settings_path();
/// An unreadable value keeps its default; every value is clamped to its range.
[[nodiscard]] settings load_settings(const std::string& path);
/// Returns "" or the error.
[[nodiscard]] std::string save_settings(const std::string& path, const settings& s);

}  // namespace carousel::viewer
