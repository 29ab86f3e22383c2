#pragma once
// The command line of `carousel bench pipeline`, defined once for both programs, in the same way as that of
// `carousel bench raster`.

#include <optional>
#include <string>
#include <vector>

#include "bench/options.hpp"
#include "core/types.hpp"

namespace CLI {
class App;
}

namespace carousel::bench {

/// The options as written on the command line; see `--help`.
struct pipeline_bench_texts {
    std::string file, against, modes, sizes, depths, out, device;
    std::vector<std::string> set;
    std::string seconds, warm_up, json, lone, plot;
    u32 rounds = 0;  ///< 0: depends on --quick
    u64 frames = 0;
    bool quick = false, wants_json = false, wants_lone = false;
};

/// Frames in flight of every stage and window of every ring. Absent: as in the file.
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
    f64 lone_fps = 0;                ///< rate of lone frames; 0: derived from the time of the kernels alone
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

}  // namespace carousel::bench
