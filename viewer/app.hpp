#pragma once
// The program between command line and panels: opens a window of the requested kind, watches a run, and draws
// until the window is closed.

#include <string>
#include <vector>

#include "core/types.hpp"
#include "viewer/session/model.hpp"
#include "viewer/watch/tap.hpp"
#include "viewer/window/window.hpp"

namespace carousel::viewer {

enum class window_kind : u8 { glfw, offscreen, null };

struct options {
    std::string name;     ///< -p: the pipeline's name; "": the only one
    picture_choice what;  ///< the picture to show, and the one next to it
    picture_styles styles;
    f64 wait_s = -1;            ///< exit if no run appears within this time; < 0: wait indefinitely
    u64 frames = 0;             ///< exit after this number of drawn frames; 0: until closed
    f64 for_s = 0;              ///< exit after this number of seconds; 0: until closed
    std::string screenshot;     ///< the window as a PNG, written at exit
    std::string dump_widgets;   ///< widget rectangles as JSON, written with each frame
    std::string settings_file;  ///< "": the user's settings file
    window_kind kind = window_kind::glfw;
    i32 width = 0, height = 0;   ///< 0: from the settings
    bool deterministic = false;  ///< drawn pictures depend only on the run's state
    bool end_run = false;        ///< end the pipeline when the user closes the window
    i32 supervisor = 0;          ///< watches only the run of this process, and exits with it; 0: any run
    picture_way way = picture_way::best;
    std::string stats;  ///< file for statistics of drawing and its cost, as JSON, written at exit
    f64 max_fps = 60;   ///< maximum of drawn frames per second
    bool light = false;
    f32 scale = 0;
};

/// Runs until closed. Returns an exit code. Throws error (no display, no GL 3.3).
int run_viewer(const options& o);

// The viewer's statistics and its cost as one JSON object, for --stats FILE: scripts use it to compare the
// ways of getting a frame to the screen.

class stats {
public:
    stats();
    /// To be called once per drawn frame.
    void feed(const model& m);
    /// {seconds, drawn_per_second, painted_share, shown_per_second, way, take_ms, show_ms, cpu_share, ...};
    /// times as {mean, p50, p99}. Throws output_error.
    void write(const std::string& path, const model& m, const window& w) const;

private:
    u64 began_ns_, began_cpu_ns_, drawn_ = 0, shown_ = 0, shown_before_ = 0;
    std::vector<f32> take_ms_, show_ms_;
    std::string way_;
};

}  // namespace carousel::viewer
