#pragma once
// The words behind `carousel bench`: raster, pipeline or ipc, and what each of them takes.

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

/// The command that was read, or "". Throws config_error for values that can't be.
std::string check_bench_command(const CLI::App& bench, const bench_words& words);

/// `what`: the first word behind `carousel bench`. Throws config_error when it is neither an option nor a
/// command.
void require_bench_command(const std::string& what);

}  // namespace carousel::bench
