#pragma once
// The subcommands of `carousel bench` (raster, pipeline, ipc) and their options.

#include <string>
#include <vector>

#include "bench/ipc/options.hpp"
#include "bench/options.hpp"
#include "bench/pipeline_options.hpp"

namespace carousel::bench {

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
