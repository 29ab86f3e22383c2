#pragma once
// The command line of `carousel bench pipeline`, defined once for both programs, as that of `carousel bench
// raster` is.

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
    std::string file, against, modes, sizes, out, device;
    std::vector<std::string> set;
    std::string seconds, warm_up, json;
    u32 rounds = 0;  ///< 0: by --quick or not
    u64 frames = 0;
    bool quick = false, wants_json = false;
};

/// The same, read and checked.
struct pipeline_bench_options {
    std::string file, against;
    std::vector<std::string> modes;   ///< "none", "process", "free", "mps"
    bool modes_asked = false;         ///< named on the command line
    std::vector<picture_size> sizes;  ///< none: the file's own
    std::vector<std::string> words;   ///< for `carousel run`, whatever mode and size
    u32 rounds = 5;
    f64 seconds = 5, warm_up_s = 1;
    u64 frames = 0;
    std::string out;   ///< of displays, where the pipeline has any
    std::string json;  ///< "": not wanted; "-": stdout
};

void add_pipeline_bench_options(CLI::App& app, pipeline_bench_texts& texts);

/// Throws config_error with a sentence for whatever can't be.
[[nodiscard]] pipeline_bench_options read_options(const pipeline_bench_texts& texts);

}  // namespace carousel::bench
