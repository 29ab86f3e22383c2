#pragma once
// The command line of `carousel bench raster`, defined once for two programs: `carousel` prints the help and
// completes and checks the command line; carousel-bench, which may load CUDA and GL, gets the same arguments
// and runs the bench.

#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace CLI {
class App;
}

namespace carousel::bench {

struct picture_size {
    u32 width = 0, height = 0;
    bool operator==(const picture_size&) const = default;
};

/// The options as written on the command line; see `--help`.
struct bench_texts {
    std::string device = "cpu", scene = "bumpy-sphere", triangles = "1M", size = "1920x1080", shading = "lit",
                path = "automatic";
    std::string peer, simd, plot, picture;
    std::string json;  ///< file, or "-" for stdout
    bool wants_json = false;
    u32 frames = 50, instances = 1, threads = 0;
    u64 first = 0;
};

/// The same options, parsed and checked.
struct bench_options {
    bool cuda = false;
    int ordinal = 0;
    std::string scene;           ///< one of kernels::mesh_shapes, checked by run_raster()
    std::vector<u32> triangles;  ///< in the order given
    std::vector<picture_size> sizes;
    /// shading has the values of scene_state, path those of raster_path
    u32 frames = 0, instances = 1, threads = 0, shading = 0, path = 0;
    u64 first = 0;
    bool opengl = false;
    std::string simd, json, plot, picture;  ///< "" if not requested
};

void add_bench_options(CLI::App& app, bench_texts& texts);

/// Returns the choices of an option; empty if the option has no fixed choices.
[[nodiscard]] std::vector<std::string> choices_of(std::string_view option);

/// Splits at commas; returns one part, possibly empty, if there is no comma.
[[nodiscard]] std::vector<std::string> split_commas(const std::string& text);
/// Parses "1280x720". Throws config_error that names the option.
[[nodiscard]] picture_size picture_size_from(const char* option, const std::string& text);

/// Parses and checks the options. Throws config_error that explains the first invalid one.
[[nodiscard]] bench_options read_options(const bench_texts& texts);

}  // namespace carousel::bench
