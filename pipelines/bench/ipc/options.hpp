#pragma once
// The command line of `carousel bench ipc`, defined once for both programs, in the same way as the command
// line of `carousel bench raster`.

#include <string>
#include <vector>

#include "core/types.hpp"

namespace CLI {
class App;
}

namespace carousel::bench {

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
    u32 round_ms = 100;      ///< duration of a round of a row of the primitives
    u32 hops = 20'000;       ///< round trips of a row of the CPU's hops
    bool quick = false;      ///< smaller memory and fewer hops, also on a GPU
    std::string plot, json;  ///< "": not requested; "-": stdout
    [[nodiscard]] bool wants(const std::string& table) const;
};

/// Returns memory, hops, primitives, gpu-memory, gpu-hops, gpu-primitives.
[[nodiscard]] const std::vector<std::string>& ipc_tables();
void add_ipc_bench_options(CLI::App& app, ipc_bench_texts& texts);
/// Parses and checks the options. Throws config_error that explains the first invalid one.
[[nodiscard]] ipc_bench_options read_options(const ipc_bench_texts& texts);

}  // namespace carousel::bench
