#include "bench/commands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "core/errors.hpp"
#include "core/user_input.hpp"

namespace carousel::bench {
namespace {
const std::vector<std::string> names = {"raster", "pipeline", "ipc"};
}

void add_bench_commands(CLI::App& bench, bench_words& words) {
    add_bench_options(
        *bench.add_subcommand("raster",
                              "Measure the renderer's kernels on a device, alone or compared with OpenGL"),
        words.raster);
    add_pipeline_bench_options(
        *bench.add_subcommand("pipeline", "Measure whole runs of any pipeline, one build or two in turn"),
        words.pipeline);
    add_ipc_bench_options(*bench.add_subcommand("ipc", "Measure the cost of communication between processes"),
                          words.ipc);
    bench.require_subcommand(1);
    bench.footer("\nFor details see `carousel bench raster --help` and the help of the others.");
}

std::string check_bench_command(const CLI::App& bench, const bench_words& words) {
    const auto chosen = bench.get_subcommands();
    const std::string name = chosen.empty() ? "" : chosen.front()->get_name();
    if (name == "raster") (void)read_options(words.raster);
    if (name == "pipeline") (void)read_options(words.pipeline);
    if (name == "ipc") (void)read_options(words.ipc);
    return name;
}

void require_bench_command(const std::string& what) {
    if (what.starts_with('-') || std::find(names.begin(), names.end(), what) != names.end()) return;
    throw config_error(fmt::format("carousel bench: \"{}\" is not one of {}{}", what, fmt::join(names, ", "),
                                   did_you_mean_clause(what, names)));
}

}  // namespace carousel::bench
