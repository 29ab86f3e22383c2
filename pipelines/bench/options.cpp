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
    app.add_option("--simd", t.simd, "Instruction set of the CPU: baseline | avx2 | avx512 [the best]")
        ->take_last();
    app.add_option("--path", t.path,
                   "Raster path for all triangles: automatic | small | medium | large [automatic]")
        ->take_last();
    app.add_option("--peer", t.peer, "Also draw with (in turn): opengl")->take_last();
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
    if (!t.simd.empty()) (void)choice("--simd", t.simd);
    if (o.cuda && (!t.simd.empty() || t.threads != 0))
        throw config_error("--threads and --simd are for --device cpu");
    if (!t.plot.empty() && !t.plot.ends_with(".svg"))
        throw config_error(fmt::format(
            "--plot: \"{}\" must end in .svg (for a PNG: rsvg-convert FILE.svg -o FILE.png)", t.plot));
    o.simd = t.simd, o.plot = t.plot, o.picture = t.picture;
    if (t.wants_json) o.json = t.json.empty() ? "-" : t.json;
    return o;
}

}  // namespace carousel::bench
