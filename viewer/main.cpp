// carousel-viewer: shows a running pipeline in a window, from a separate process. A viewer may be started and
// killed at any time; several may run at once.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "core/errors.hpp"
#include "core/process.hpp"
#include "viewer/app.hpp"
#include "viewer/watch/command_line.hpp"
#include "viewer/watch/tap.hpp"

namespace {

bool parse_size(const std::string& text, carousel::viewer::options& o) {
    int w = 0, h = 0;
    char rest = 0;
    if (std::sscanf(text.c_str(), "%dx%d%c", &w, &h, &rest) != 2 || w < 64 || h < 64 || w > 16384 ||
        h > 16384)
        return false;
    o.width = w;
    o.height = h;
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    namespace viewer = carousel::viewer;
    viewer::stay_outside_mps();
    viewer::options o;
    CLI::App app{
        "A window that shows a running Carousel pipeline: the image, stages, rings, plots and a timeline, "
        "and buttons that kill, stop or restart a stage.\n"
        "It reads only the newest frame and never blocks the pipeline."};
    app.name("carousel-viewer");
    std::string size;
    std::string way = "best", stage, compare, range, colours, exposure, tone_map, channel;
    bool offscreen = false, null = false;
    app.add_option("-p,--name", o.name, "name of the pipeline to watch (default: the only running pipeline)");
    app.add_option("--stage", stage,
                   "output to show, STAGE or STAGE/PLANE (default: the input of the last sink)");
    app.add_option("--compare", compare,
                   "on the right, show the same frame in another ring: STAGE or STAGE/PLANE");
    app.add_option("--range", range,
                   "range of values: auto (without 0.5 % at either end), extremes, or LOW..HIGH [auto]")
        ->check([&o](const std::string& text) {
            return viewer::read_range(text, o.styles.of[0]) ? ""
                                                            : fmt::format("expected {}", viewer::range_forms);
        });
    app.add_option("--colours", colours,
                   "colours of values: auto (by the meaning of the plane), grey, viridis, labels, light or "
                   "normals [auto]")
        ->check([&o](const std::string& text) {
            return viewer::read_colours(text, o.styles.of[0])
                       ? ""
                       : fmt::format("expected {}", viewer::colour_forms);
        });
    app.add_option("--exposure", exposure, "exposure of linear light, in stops [0]")
        ->check([&o](const std::string& text) {
            return viewer::read_exposure(text, o.styles.of[0])
                       ? ""
                       : fmt::format("expected {}", viewer::exposure_forms);
        });
    app.add_option("--tone-map", tone_map, "tone map of linear light: neutral, aces or linear [neutral]")
        ->check([&o](const std::string& text) {
            return viewer::read_tone_map(text, o.styles.of[0])
                       ? ""
                       : fmt::format("expected {}", viewer::tone_map_forms);
        });
    app.add_option("--channel", channel, "channel to show alone, for example roughness [all]");
    app.add_option("--wait", o.wait_s,
                   "seconds to wait for a pipeline before giving up (default: the window waits)");
    app.add_option("--frames", o.frames, "end after N drawn frames");
    app.add_option("--seconds", o.for_s, "end after N seconds");
    app.add_option("--screenshot", o.screenshot, "write the window as a PNG at the end");
    app.add_option("--size", size, "WxH of the window in pixels")->check([&o](const std::string& text) {
        return parse_size(text, o) ? std::string() : "expected WxH, 64 to 16384 each, for example 1920x1080";
    });
    app.add_option("--scale", o.scale, "scale of text and widgets (default: from the display)")
        ->check(CLI::Range(0.5, 4.0));
    app.add_option("--settings", o.settings_file,
                   "file that keeps the layout (default: ~/.config/carousel/viewer.ini)");
    app.add_option("--dump-widgets", o.dump_widgets, "write the widgets' rectangles as JSON (for tests)");
    app.add_option("--path", way,
                   "transfer of the picture: best (interop, else a copy), interop or copy [best]")
        ->check(CLI::IsMember({"best", "interop", "copy"}));
    app.add_option("--max-fps", o.max_fps, "at most N drawn frames per second [60]; a static window draws 10")
        ->check(CLI::Range(1.0, 1000.0));
    app.add_option("--stats", o.stats, "at the end, write frames/s, ms per frame and CPU share as JSON");
    app.add_option("--run-pid", o.supervisor, "watch the run of this `carousel run` process, and end with it")
        ->check(CLI::PositiveNumber);
    app.add_flag("--offscreen", offscreen, "draw without a display (for --screenshot)");
    app.add_flag("--null", null, "draw nothing at all (for tests)");
    app.add_flag("--deterministic", o.deterministic,
                 "draw only what depends on the run's state (for comparisons)");
    auto* end_run = app.add_flag("--end-run", o.end_run, "closing the window ends the pipeline");
    app.add_flag("--read-only", o.read_only, "send no command to the pipeline; its controls are disabled")
        ->excludes(end_run);
    app.add_flag("--light", o.light, "light colours");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return viewer::usage_exit_code(app, e);
    }
    if (!channel.empty()) viewer::read_channel(channel, o.styles.of[0]);
    o.what.first = viewer::plane_from_text(stage);
    if (!compare.empty()) o.what.compare = viewer::plane_from_text(compare);
    o.way = way == "copy"      ? carousel::viewer::picture_way::copy
            : way == "interop" ? carousel::viewer::picture_way::interop
                               : carousel::viewer::picture_way::best;
    o.kind = null        ? carousel::viewer::window_kind::null
             : offscreen ? carousel::viewer::window_kind::offscreen
                         : carousel::viewer::window_kind::glfw;
    try {
        return carousel::viewer::run_viewer(o);
    } catch (const carousel::error& e) {
        std::fprintf(stderr, "carousel-viewer: %s%s\n", e.what(),
                     o.supervisor > 0 ? ". The pipeline continues without it." : "");
        return e.code();
    } catch (const std::exception& e) {
        std::fprintf(stderr, "carousel-viewer: %s\n", e.what());
        return carousel::exit_code::usage;
    }
}
