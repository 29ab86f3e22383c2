#pragma once
// The viewer after its command line is parsed: opens a window of the requested kind, watches a run, and draws
// the panels until the window is closed.

#include <string>
#include <vector>

#include "core/types.hpp"
#include "viewer/session/model.hpp"
#include "viewer/watch/tap.hpp"
#include "viewer/window/window.hpp"

namespace carousel::viewer {

enum class window_kind : u8 { glfw, offscreen, null };

struct options {
    std::string name;     ///< option -p: the pipeline's name; "": the only running pipeline
    picture_choice what;  ///< the picture to show, and the picture next to it
    picture_styles styles;
    f64 wait_s = -1;            ///< exit if no run appears within this time; < 0: wait indefinitely
    u64 frames = 0;             ///< exit after this number of drawn frames; 0: when the window is closed
    f64 for_s = 0;              ///< exit after this number of seconds; 0: when the window is closed
    std::string screenshot;     ///< PNG file to which the window is saved at exit
    std::string dump_widgets;   ///< JSON file of the widgets' rectangles, written with each frame
    std::string settings_file;  ///< "": the user's settings file
    window_kind kind = window_kind::glfw;
    i32 width = 0, height = 0;   ///< 0: from the settings
    bool deterministic = false;  ///< the drawn pictures depend only on the run's state, not on the time
    bool end_run = false;        ///< the viewer ends the pipeline when the user closes the window
    i32 supervisor = 0;          ///< pid of a `carousel run` process: the viewer watches only the run of this
                                 ///< process, and exits after the process and its run have ended; 0: any run
    picture_way way = picture_way::best;
    std::string stats;  ///< JSON file with statistics and the cost of drawing, written at exit
    f64 max_fps = 60;   ///< maximum number of drawn frames per second
    bool light = false;
    bool read_only = false;  ///< sends no command to the run
    f32 scale = 0;
};

/// Runs until the window is closed. Returns an exit code. Throws error if there is no display or no GL 3.3.
int run_viewer(const options& o);

// The viewer's statistics and the cost of its drawing, as one JSON object for --stats FILE. Scripts use them
// to compare the ways in which a frame gets to the screen.

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
