#pragma once
// The program between command line and panels: opens a window of the kind asked for, watches a run, draws
// until it is closed.

#include <string>

#include "core/types.hpp"
#include "viewer/watch/tap.hpp"

namespace carousel::viewer {

enum class window_kind : u8 { glfw, offscreen, null };

struct options {
    std::string name;     ///< -p: which pipeline; "": the only one
    picture_choice what;  ///< whose picture, and which beside it
    picture_styles styles;
    f64 wait_s = -1;            ///< give up when no run is there after so long; < 0: the window waits
    u64 frames = 0;             ///< end after so many drawn frames; 0: until closed
    f64 for_s = 0;              ///< end after so many seconds; 0: until closed
    std::string screenshot;     ///< the window as a PNG at the end
    std::string dump_widgets;   ///< widget rectangles as JSON, written with each frame
    std::string settings_file;  ///< "": the user's
    window_kind kind = window_kind::glfw;
    i32 width = 0, height = 0;   ///< 0: as kept
    bool deterministic = false;  ///< pictures that depend on the run's state alone
    bool end_run = false;        ///< closing the window ends the pipeline
    i32 supervisor = 0;          ///< watch the run of this process alone, and end with it; 0: any run
    picture_way way = picture_way::best;
    std::string stats;  ///< what was drawn and what it cost, as JSON, written at the end
    f64 max_fps = 60;   ///< drawn frames a second at most
    bool light = false;
    f32 scale = 0;
};

/// Runs until closed. Returns an exit code; throws error (no display, no GL 3.3).
int run_viewer(const options& o);

}  // namespace carousel::viewer
