#pragma once
// The command lines of `carousel bench`, defined once for two programs: `carousel` prints the help, and
// completes and checks the command lines; carousel-bench, which may load CUDA and GL, gets the same arguments
// and runs the bench.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace carousel::bench {

// `carousel bench raster`.

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
    bool wants_json = false, stages = false;
    u32 frames = 50, instances = 1, threads = 0, samples = 1;
    u64 first = 0;
};

/// The same options, parsed and checked.
struct bench_options {
    bool cuda = false;
    int ordinal = 0;
    std::string scene;           ///< one of kernels::mesh_shapes, checked by run_raster()
    std::vector<u32> triangles;  ///< in the order given
    std::vector<picture_size> sizes;
    /// shading: as in scene_state; path: as in raster_path
    u32 frames = 0, instances = 1, threads = 0, shading = 0, path = 0, samples = 1;
    u64 first = 0;
    bool opengl = false, stages = false;
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

// `carousel bench pipeline`.

/// The options as written on the command line; see `--help`.
struct pipeline_bench_texts {
    std::string file, against, modes, sizes, depths, out, device;
    std::vector<std::string> set;
    std::string seconds, warm_up, json, lone, plot;
    u32 rounds = 0;  ///< 0: depends on --quick
    u64 frames = 0;
    bool quick = false, wants_json = false, wants_lone = false;
};

/// The number of frames in flight of every stage and the window of every ring. If absent, the values of the
/// file apply.
struct forced_depth {
    u32 in_flight = 0, window = 0;
    bool operator==(const forced_depth&) const = default;
};

/// The same options, parsed and checked.
struct pipeline_bench_options {
    std::string file, against;
    std::vector<std::string> modes;   ///< "none", "process", "free", "mps"
    bool modes_requested = false;     ///< true: given on the command line
    std::vector<picture_size> sizes;  ///< empty: the file's own
    std::vector<std::optional<forced_depth>> depths{std::nullopt};
    bool lone = false;               ///< measure lone frames, too
    f64 lone_fps = 0;                ///< rate at which lone frames are started, per second; 0: the rate is
                                     ///< derived from the time of the kernels alone
    std::vector<std::string> words;  ///< arguments of `carousel run`, the same for all modes and sizes
    u32 rounds = 5;
    f64 seconds = 5, warm_up_s = 1;
    u64 frames = 0;
    std::string out;   ///< output path of displays, if the pipeline has any
    std::string json;  ///< "": not requested; "-": stdout
    std::string plot;  ///< an .svg file; "": none
};

void add_pipeline_bench_options(CLI::App& app, pipeline_bench_texts& texts);

/// Parses and checks the options. Throws config_error that explains the first invalid one.
[[nodiscard]] pipeline_bench_options read_options(const pipeline_bench_texts& texts);

// `carousel bench ipc`.

/// The options as written on the command line; see `--help`.
struct ipc_bench_texts {
    std::string processes, tables, plot, json;
    u32 rounds = 0;  ///< 0: depends on --quick
    bool quick = false, wants_json = false;
};

/// The same options, parsed and checked.
struct ipc_bench_options {
    std::vector<u32> processes;       ///< ascending
    std::vector<std::string> tables;  ///< some of ipc_tables()
    u32 rounds = 5;
    u32 round_ms = 100;      ///< duration of one round of a row in the table of primitives
    u32 hops = 20'000;       ///< round trips of a row of the CPU's hops
    bool quick = false;      ///< measures smaller memory and fewer hops, also on a GPU
    std::string plot, json;  ///< "": not requested; "-": stdout
    [[nodiscard]] bool wants(const std::string& table) const;
};

/// Returns memory, hops, primitives, gpu-memory, gpu-hops, gpu-primitives.
[[nodiscard]] const std::vector<std::string>& ipc_tables();
void add_ipc_bench_options(CLI::App& app, ipc_bench_texts& texts);
/// Parses and checks the options. Throws config_error that explains the first invalid one.
[[nodiscard]] ipc_bench_options read_options(const ipc_bench_texts& texts);

// The subcommands of `carousel bench` (raster, pipeline, ipc) and their options.

struct bench_words {
    bench_texts raster;
    pipeline_bench_texts pipeline;
    ipc_bench_texts ipc;
};

/// Adds the commands `raster`, `pipeline` and `ipc` to `bench`.
void add_bench_commands(CLI::App& bench, bench_words& words);

/// Returns the name of the parsed subcommand, or "". Throws config_error for invalid values.
std::string check_bench_command(const CLI::App& bench, const bench_words& words);

/// `what`: the first argument after `carousel bench`. Throws config_error if it is neither an option nor a
/// subcommand.
void require_bench_command(const std::string& what);

}  // namespace carousel::bench
