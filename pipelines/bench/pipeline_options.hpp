#pragma once
// The command line of `carousel bench pipeline`, defined once for both programs, as that of `carousel bench
// raster` is.

#include <optional>
#include <string>
#include <vector>

#include "bench/options.hpp"
#include "core/types.hpp"

namespace CLI {
class App;
}

namespace carousel::bench {

/// As they are written on the command line; see `--help`.
struct pipeline_bench_texts {
    std::string file, against, modes, sizes, depths, out, device;
    std::vector<std::string> set;
    std::string seconds, warm_up, json, lone, plot;
    u32 rounds = 0;  ///< 0: by --quick or not
    u64 frames = 0;
    bool quick = false, wants_json = false, wants_lone = false;
};

/// Frames in flight of every stage and the window of every ring. Nothing: as the file says.
struct forced_depth {
    u32 in_flight = 0, window = 0;
    bool operator==(const forced_depth&) const = default;
};

/// The same, read and checked.
struct pipeline_bench_options {
    std::string file, against;
    std::vector<std::string> modes;   ///< "none", "process", "free", "mps"
    bool modes_requested = false;     ///< named on the command line
    std::vector<picture_size> sizes;  ///< none: the file's own
    std::vector<std::optional<forced_depth>> depths{std::nullopt};
    bool lone = false;               ///< frames that are alone, too
    f64 lone_fps = 0;                ///< at this pace; 0: by what the kernels alone take
    std::vector<std::string> words;  ///< for `carousel run`, whatever mode and size
    u32 rounds = 5;
    f64 seconds = 5, warm_up_s = 1;
    u64 frames = 0;
    std::string out;   ///< of displays, where the pipeline has any
    std::string json;  ///< "": not wanted; "-": stdout
    std::string plot;  ///< an .svg; "": none
};

void add_pipeline_bench_options(CLI::App& app, pipeline_bench_texts& texts);

/// Throws config_error with a sentence for whatever can't be.
[[nodiscard]] pipeline_bench_options read_options(const pipeline_bench_texts& texts);

}  // namespace carousel::bench
