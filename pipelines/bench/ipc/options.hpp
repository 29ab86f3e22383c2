#pragma once
// The command line of `carousel bench ipc`, defined once for both programs, as that of `carousel bench
// raster` is.

#include <string>
#include <vector>

#include "core/types.hpp"

namespace CLI {
class App;
}

namespace carousel::bench {

/// As they are written on the command line; see `--help`.
struct ipc_bench_texts {
    std::string processes, tables, plot, json;
    u32 rounds = 0;  ///< 0: by --quick or not
    bool quick = false, wants_json = false;
};

/// The same, read and checked.
struct ipc_bench_options {
    std::vector<u32> processes;       ///< ascending
    std::vector<std::string> tables;  ///< of ipc_tables()
    u32 rounds = 5;
    u32 round_ms = 100;      ///< of a row of the primitives
    u32 hops = 20'000;       ///< round trips of a row of the CPU's
    bool quick = false;      ///< smaller memory and fewer hops on a GPU, too
    std::string plot, json;  ///< "": not wanted; "-": stdout
    [[nodiscard]] bool wants(const std::string& table) const;
};

/// memory, hops, primitives, gpu-memory, gpu-hops, gpu-primitives.
[[nodiscard]] const std::vector<std::string>& ipc_tables();
void add_ipc_bench_options(CLI::App& app, ipc_bench_texts& texts);
/// Throws config_error with a sentence for whatever can't be.
[[nodiscard]] ipc_bench_options read_options(const ipc_bench_texts& texts);

}  // namespace carousel::bench
