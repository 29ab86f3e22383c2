#include "bench/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/errors.hpp"
#include "core/user_input.hpp"
#include "kernels/mesh_shape.hpp"

namespace carousel::bench {
namespace {

constexpr u32 most_triangles = 1U << 29;
constexpr u32 max_pixels_per_side = 16384;  // kernels::max_extent
constexpr u32 most_frames = 1'000'000;

constexpr const char* footer = R"(
Examples:
  carousel bench raster --device cpu --triangles 10k,100k,1M --peer opengl
  carousel bench raster --device cuda:0 --triangles 10k,1M,10M --size 1920x1080,3840x2160 --json r.json --plot r.svg
  carousel bench raster --stages --scene torus-knots --triangles 20k --instances 24 --size 640x360

Times of one frame, median and 95th percentile in ms, of the vertex and the fragment stage's kernels: device events on a GPU; on the CPU
wall time, and CPU time of all threads. On a GPU, raster (clear + raster) and resolve are measured separately, in separate frames. "of floor":
the minimum of bytes to move (pipelines/bench/bytes.hpp), divided by this device's copy bandwidth in the same run and by the time.
--peer opengl draws the same scene in turn with OpenGL through EGL, without a display: on the CPU llvmpipe, on a GPU its own driver;
ratio = Carousel / peer for whole frames (vertex + clear + raster + resolve): below 1, Carousel is faster.
Exit codes: 0; 2 usage; 3 no such device, or no OpenGL; 75 a file can't be written.)";

bool read_number(std::string_view text, f64& value) {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    return failed == std::errc{} && end == text.data() + text.size();
}

/// Parses "1000", "10k", "2.5M".
u32 triangles_from(const std::string& text) {
    std::string_view digits = text;
    f64 value = 0, unit = 1;
    if (digits.ends_with('k')) unit = 1e3;
    if (digits.ends_with('M')) unit = 1e6;
    if (unit != 1) digits.remove_suffix(1);
    if (!read_number(digits, value) || !(value * unit >= 1 && value * unit <= most_triangles))
        throw config_error(
            fmt::format("--triangles: \"{}\" is not a number of triangles; expected 1 to {}, also 10k or 1M, "
                        "several with commas",
                        text, most_triangles));
    return static_cast<u32>(std::lround(value * unit));
}

u32 choice(const char* option, const std::string& text) {
    const std::vector<std::string> names = choices_of(option);
    const auto at = std::find(names.begin(), names.end(), text);
    if (at == names.end())
        throw config_error(fmt::format("{}: \"{}\" is not one of {}{}", option, text, fmt::join(names, ", "),
                                       did_you_mean_clause(text, names)));
    return static_cast<u32>(at - names.begin());
}

void read_device(const std::string& text, bench_options& o) {
    o.cuda = text != "cpu";
    if (!o.cuda || text == "cuda") return;
    const char* const end = text.data() + text.size();
    const bool prefix = text.starts_with("cuda:");
    const auto number = prefix ? std::from_chars(text.data() + 5, end, o.ordinal)
                               : std::from_chars_result{text.data(), std::errc::invalid_argument};
    if (number.ec != std::errc{} || number.ptr != end || o.ordinal < 0)
        throw config_error(
            fmt::format("--device: \"{}\" is not a device; expected cpu, cuda:0, cuda:1, ...", text));
}

const std::vector<std::string> names = {"raster", "pipeline", "ipc"};

constexpr u32 most_rounds = 1000;

constexpr const char* pipeline_footer = R"(
Examples:
  carousel bench pipeline pipelines/demo.toml
  carousel bench pipeline pipelines/demo.toml --against ../before/build/release --sizes 1280x720,1920x1080 --rounds 10
  carousel bench pipeline pipelines/knots.toml --device cuda:0 --modes process,mps --json r.json
  carousel bench pipeline pipelines/demo.toml --modes none,process,free --depths auto,3,14/16 --lone --plot demo.svg

Each run is a separate `carousel run`, without pictures (--out ''). It is measured after the first frames and --warm-up for
--seconds or --frames; start and end are not measured. One round runs every mode and size (and build) once, and the order
rotates from round to round, so that other load on the machine affects all alike. Figures are medians of the rounds, with minimum and maximum in brackets.
  frames/s    delivered by every sink           p50, p99  source's claim to sink's commit, of the slowest sink
  CPU/frame   all stages and the supervisor     memory    of all processes, shared memory once; GPU: as nvidia-smi counts it, all GPUs
Next to each figure is its bound: only the same stages' work on that device, in one queue or several concurrently, measured in each round
(for stages that Carousel ships, all on one device; otherwise the output says that it is missing). --lone also measures single frames in the pipeline.
--modes none runs the shipped stages as threads of one process and one context, without ring, ledger or recovery:
the reference for isolation. The other modes then show their rate relative to it.
--against BUILD (a build folder, or a prefix of `cmake --install`) measures A = BUILD and B = this build in turn. The difference is
B's over A's: each round gives one ratio; mean and 95 % interval by Student's t over their logarithms.
A frame that is lost, repeated, torn or given up, or a process that dies, ends the measurement: its figures are not valid.
Exit codes: 0 measured, with any verdict; 1 a run failed or harmed a frame; 2 usage or pipeline file; 3 no such device; 75 a file can't
be written; 130 Ctrl-C.)";

/// `is`: a description of the number, e.g. "time in seconds".
f64 number_of(const char* option, const std::string& text, const char* is, f64 least) {
    constexpr f64 most = 86400;
    f64 value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc{} || end != text.data() + text.size() || !(value >= least && value <= most))
        throw config_error(
            fmt::format("{}: \"{}\" is not a {} from {} to {}", option, text, is, least, most));
    return value;
}

f64 seconds_of(const char* option, const std::string& text, f64 least) {
    return number_of(option, text, "time in seconds", least);
}

void read_modes(const std::string& text, pipeline_bench_options& o) {
    o.modes_requested = !text.empty();
    for (const std::string& mode : split_commas(text.empty() ? "process,mps" : text)) {
        if (mode != "none" && mode != "process" && mode != "free" && mode != "mps")
            throw config_error(fmt::format("--modes: \"{}\" is none of none, process, free, mps{}", mode,
                                           did_you_mean_clause(mode, {"none", "process", "free", "mps"})));
        o.modes.push_back(mode);
    }
}

/// Parses "auto", "14" (both in_flight and window) or "14/16" (in_flight/window).
std::optional<forced_depth> depth_from(const std::string& text) {
    if (text == "auto") return std::nullopt;
    forced_depth d;
    const char* const end = text.data() + text.size();
    auto [at, failed] = std::from_chars(text.data(), end, d.in_flight);
    d.window = d.in_flight;
    bool good = failed == std::errc{};
    if (good && at != end && *at == '/') {
        const auto [rest, wrong] = std::from_chars(at + 1, end, d.window);
        at = rest, good = wrong == std::errc{};
    }
    if (!good || at != end || d.in_flight < 1 || d.in_flight > 16 || d.window < 1 || d.window > 48)
        throw config_error(
            fmt::format("--depths: \"{}\" is not a depth; expected \"auto\", a number of frames in flight "
                        "from 1 to 16, or that number and a window from 1 to 48, e.g. 14/16",
                        text));
    return d;
}

}  // namespace

std::vector<std::string> choices_of(std::string_view option) {
    if (option == "--shading") return {"lit", "normals", "ids", "depth"};
    if (option == "--path") return {"automatic", "small", "medium", "large"};
    if (option == "--peer") return {"opengl"};
    if (option == "--simd") return {"baseline", "avx2", "avx512"};
    std::vector<std::string> shapes;
    if (option == "--scene")
        for (const kernels::mesh_shape_row& row : kernels::mesh_shapes) shapes.emplace_back(row.name);
    return shapes;
}

std::vector<std::string> split_commas(const std::string& text) {
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == ',')
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

picture_size picture_size_from(const char* option, const std::string& text) {
    picture_size s;
    const char* const end = text.data() + text.size();
    const auto width = std::from_chars(text.data(), end, s.width);
    const bool by = width.ec == std::errc{} && width.ptr != end && *width.ptr == 'x';
    const auto height = by ? std::from_chars(width.ptr + 1, end, s.height) : width;
    if (!by || height.ec != std::errc{} || height.ptr != end || s.width == 0 || s.height == 0 ||
        std::max(s.width, s.height) > max_pixels_per_side)
        throw config_error(fmt::format(
            "{}: \"{}\" is not a size; expected WxH with 1 to {} pixels per side, several with commas",
            option, text, max_pixels_per_side));
    return s;
}

void add_bench_options(CLI::App& app, bench_texts& t) {
    app.add_option("--device", t.device, "cpu | cuda:N [cpu]")->type_name("DEVICE")->take_last();
    app.add_option("--scene", t.scene,
                   "Shape, e.g. bumpy-sphere, fractal-terrain, triangle-soup, long-slivers [bumpy-sphere]")
        ->type_name("NAME")
        ->take_last();
    app.add_option("--triangles", t.triangles, "Triangles of the mesh, e.g. 10k,100k,1M [1M]")
        ->type_name("N[,N...]")
        ->take_last();
    app.add_option("--size", t.size, "Sizes of the picture [1920x1080]")
        ->type_name("WxH[,WxH...]")
        ->take_last();
    app.add_option("--frames", t.frames, "Measured frames per cell [50]")->type_name("N")->take_last();
    app.add_option("--instances", t.instances, "Instances of the mesh [1]")->type_name("N")->take_last();
    app.add_option("--first", t.first, "Number of the first frame [0]")->type_name("N")->take_last();
    app.add_option("--threads", t.threads, "CPU threads of both renderers [all cores]")
        ->type_name("N")
        ->take_last();
    app.add_option("--shading", t.shading, "lit | normals | ids | depth [lit]")->take_last();
    app.add_flag("--stages", t.stages,
                 "Measure the stages of looks.toml: vertex, fragment (G-buffer), shadow, light, post");
    app.add_option("--samples", t.samples, "Samples per pixel of --stages: 1 | 4 [1]")
        ->type_name("N")
        ->take_last();
    app.add_option("--simd", t.simd, "Instruction set of the CPU: baseline | avx2 | avx512 [the best]")
        ->take_last();
    app.add_option("--path", t.path,
                   "Raster path for all triangles: automatic | small | medium | large [automatic]")
        ->take_last();
    app.add_option("--peer", t.peer, "Second renderer, measured alternately with this one: opengl")
        ->take_last();
    app.add_option("--json", t.json, "Write the results as JSON to FILE [stdout]")
        ->type_name("[FILE]")
        ->expected(0, 1);
    app.add_option("--plot", t.plot, "Write a plot of the times over the sizes")
        ->type_name("FILE.svg")
        ->take_last();
    app.add_option("--picture", t.picture, "Write the last picture of the last cell")
        ->type_name("FILE.png")
        ->take_last();
    app.footer(footer);
    app.callback([&app, &t] { t.wants_json = app.count("--json") > 0; });
}

bench_options read_options(const bench_texts& t) {
    bench_options o;
    read_device(t.device, o);
    for (const std::string& each : split_commas(t.triangles)) o.triangles.push_back(triangles_from(each));
    for (const std::string& each : split_commas(t.size)) o.sizes.push_back(picture_size_from("--size", each));
    o.scene = t.scene;
    o.shading = choice("--shading", t.shading);
    o.path = choice("--path", t.path);
    if (t.frames == 0 || t.frames > most_frames)
        throw config_error(fmt::format("--frames: {} is not a number from 1 to {}", t.frames, most_frames));
    if (t.instances == 0) throw config_error("--instances: at least 1 is needed");
    o.frames = t.frames, o.instances = t.instances, o.threads = t.threads, o.first = t.first;
    if (!t.peer.empty()) o.opengl = (choice("--peer", t.peer), true);
    if (o.opengl && o.shading != 0)
        throw config_error("--peer opengl draws only lit pictures: remove --shading");
    o.stages = t.stages;
    if (o.stages && (o.opengl || o.shading != 0 || o.path != 0))
        throw config_error("--stages excludes --peer, --shading and --path");
    o.samples = t.samples;
    if (o.samples != 1 && (o.samples != 4 || !o.stages))
        throw config_error("--samples must be 1, or 4 with --stages");
    if (!t.simd.empty()) (void)choice("--simd", t.simd);
    if (o.cuda && (!t.simd.empty() || t.threads != 0))
        throw config_error("--threads and --simd require --device cpu");
    if (!t.plot.empty() && !t.plot.ends_with(".svg"))
        throw config_error(fmt::format(
            "--plot: \"{}\" must end in .svg (for a PNG: rsvg-convert FILE.svg -o FILE.png)", t.plot));
    o.simd = t.simd, o.plot = t.plot, o.picture = t.picture;
    if (t.wants_json) o.json = t.json.empty() ? "-" : t.json;
    return o;
}

void add_bench_commands(CLI::App& bench, bench_words& words) {
    add_bench_options(
        *bench.add_subcommand("raster",
                              "Measure the renderer's kernels on a device, alone or compared with OpenGL"),
        words.raster);
    add_pipeline_bench_options(
        *bench.add_subcommand("pipeline", "Measure whole runs of any pipeline, one build or two in turn"),
        words.pipeline);
    add_ipc_bench_options(*bench.add_subcommand("ipc", "Measure the cost of communication between processes"),
                          words.ipc);
    bench.require_subcommand(1);
    bench.footer("\nFor details see `carousel bench raster --help` and the help of the others.");
}

std::string check_bench_command(const CLI::App& bench, const bench_words& words) {
    const auto chosen = bench.get_subcommands();
    const std::string name = chosen.empty() ? "" : chosen.front()->get_name();
    if (name == "raster") (void)read_options(words.raster);
    if (name == "pipeline") (void)read_options(words.pipeline);
    if (name == "ipc") (void)read_options(words.ipc);
    return name;
}

void require_bench_command(const std::string& what) {
    if (what.starts_with('-') || std::find(names.begin(), names.end(), what) != names.end()) return;
    throw config_error(fmt::format("carousel bench: \"{}\" is not one of {}{}", what, fmt::join(names, ", "),
                                   did_you_mean_clause(what, names)));
}

void add_pipeline_bench_options(CLI::App& app, pipeline_bench_texts& t) {
    app.add_option("FILE", t.file, "Pipeline file (TOML)")->required();
    app.add_option("--against", t.against, "Also measure this other build, alternately")
        ->type_name("BUILD")
        ->take_last();
    app.add_option("--rounds", t.rounds, "Runs of each mode, size and build [5]")
        ->type_name("N")
        ->take_last();
    app.add_option("--seconds", t.seconds, "Seconds measured in each run [5]")->type_name("S")->take_last();
    app.add_option("--frames", t.frames, "Frames measured in each run, instead of --seconds")
        ->type_name("N")
        ->take_last();
    app.add_option("--warm-up", t.warm_up, "Seconds of warm-up of each run, after its first frames [1]")
        ->type_name("S")
        ->take_last();
    app.add_option("--modes", t.modes,
                   "none (one process, no isolation), process (a GPU context per stage), free (like process, "
                   "but without turns on the GPU), mps [process, and mps if available]")
        ->type_name("MODE[,MODE]")
        ->take_last();
    app.add_option("--sizes,--size", t.sizes, "Sizes of the pictures [the file's]")
        ->type_name("WxH[,WxH...]")
        ->take_last();
    app.add_option("--depths", t.depths,
                   "Frames in flight of every stage and windows of all rings [the file's]")
        ->type_name("auto|N[/W][,...]")
        ->take_last();
    app.add_option("--lone", t.lone,
                   "Also measure the latency of single frames, in runs at FPS frames/s [derived from the "
                   "latency bound]")
        ->type_name("[FPS]")
        ->expected(0, 1);
    app.add_option("--device", t.device,
                   "auto | cpu | cuda:N, for stages without their own device [the file's]")
        ->type_name("DEVICE")
        ->take_last();
    app.add_option("--set", t.set, "Any key of the file; may be repeated")
        ->type_name("KEY=VALUE")
        ->expected(1)
        ->take_all();
    app.add_option("--out", t.out, "Files for the pictures of the displays [none]")
        ->type_name("PATTERN")
        ->take_last();
    app.add_flag("--quick", t.quick, "3 rounds of 1 s after a warm-up of 0.3 s, for a first impression");
    app.add_option("--json", t.json, "Write the figures of every run as JSON to FILE [stdout]")
        ->type_name("[FILE]")
        ->expected(0, 1);
    app.add_option("--plot", t.plot, "Draw the figures as SVG into FILE")->type_name("FILE.svg")->take_last();
    app.footer(pipeline_footer);
    app.callback([&app, &t] {
        t.wants_json = app.count("--json") > 0;
        t.wants_lone = app.count("--lone") > 0;
    });
}

pipeline_bench_options read_options(const pipeline_bench_texts& t) {
    pipeline_bench_options o;
    o.file = t.file, o.against = t.against, o.frames = t.frames;
    if (t.quick) o.rounds = 3, o.seconds = 1, o.warm_up_s = 0.3;
    if (t.rounds > most_rounds)
        throw config_error(fmt::format("--rounds: {} is not a number from 1 to {}", t.rounds, most_rounds));
    if (t.rounds > 0) o.rounds = t.rounds;
    if (!t.seconds.empty() && t.frames > 0) throw config_error("--seconds and --frames exclude each other");
    if (!t.seconds.empty()) o.seconds = seconds_of("--seconds", t.seconds, 0.1);
    if (!t.warm_up.empty()) o.warm_up_s = seconds_of("--warm-up", t.warm_up, 0);
    read_modes(t.modes, o);
    if (!t.sizes.empty())
        for (const std::string& size : split_commas(t.sizes))
            o.sizes.push_back(picture_size_from("--sizes", size));
    if (!t.depths.empty()) o.depths.clear();
    for (const std::string& depth : split_commas(t.depths))
        if (!t.depths.empty()) o.depths.push_back(depth_from(depth));
    o.lone = t.wants_lone;
    if (!t.lone.empty()) o.lone_fps = number_of("--lone", t.lone, "rate in frames/s", 0.1);
    if (!t.plot.empty() && !t.plot.ends_with(".svg"))
        throw config_error(fmt::format("--plot: \"{}\" must end in .svg", t.plot));
    o.plot = t.plot;
    for (const std::string& each : t.set) o.words.insert(o.words.end(), {"--set", each});
    if (!t.device.empty()) o.words.insert(o.words.end(), {"--device", t.device});
    o.out = t.out;
    if (t.wants_json) o.json = t.json.empty() ? "-" : t.json;
    return o;
}

}  // namespace carousel::bench
