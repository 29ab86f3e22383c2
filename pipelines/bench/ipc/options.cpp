#include "bench/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "core/errors.hpp"
#include "core/user_input.hpp"

namespace carousel::bench {
namespace {

constexpr u32 most_processes = 64, most_ipc_rounds = 1000;

constexpr const char* ipc_footer = R"(
Examples:
  carousel bench ipc --quick
  carousel bench ipc --tables primitives --processes 1,4,16 --json ipc.json --plot ipc.svg

Measures the cost of communication between processes on this machine:
  memory      a process's own memory and a memfd of another process: GB/s, ns per dependent load, us to open, map and close
  hops        from one process to another and back, by each means: us for one way, median and 95th percentile
  primitives  operations of all workers per second, and ns per operation: <carousel/ipc.hpp> between processes,
              compared with Boost between processes and the best alternative between threads of one process
  gpu-memory  own GPU memory and another process's by each kind of handle, on the same GPU and on a peer: GB/s by
              the driver's copies and by kernels, dependent loads (a pointer chase), us to open, map and close
  gpu-hops    a kernel of one process to a kernel of another by each means: time slices, MPS, two GPUs, one process
  gpu-primitives  <carousel/ipc_cuda.cuh> in kernels and streams of 1 to 16 processes, in time slices and under MPS,
              compared with libcu++ and cudaMallocAsync in one process; rows skipped by its time limit (45 s quick, else 150) are named
All rows take turns in the same run; figures are medians of the rounds. Transferred data is verified, and a wrong row fails the run.
Without a GPU, a second GPU or MPS, the other rows are measured, and the output has the cause.
Exit codes: 0; 1 a row was wrong; 2 usage; 3 only GPU tables, and no GPU; 74 no shared memory; 75 a file can't be written.)";

u32 count_from(const char* option, const std::string& text, u32 most) {
    u32 value = 0;
    const char* const end = text.data() + text.size();
    const auto got = std::from_chars(text.data(), end, value);
    if (got.ec != std::errc{} || got.ptr != end || value == 0 || value > most)
        throw config_error(fmt::format("{}: \"{}\" is not a number from 1 to {}", option, text, most));
    return value;
}

}  // namespace

const std::vector<std::string>& ipc_tables() {
    static const std::vector<std::string> all = {"memory",     "hops",     "primitives",
                                                 "gpu-memory", "gpu-hops", "gpu-primitives"};
    return all;
}

bool ipc_bench_options::wants(const std::string& table) const {
    return std::find(tables.begin(), tables.end(), table) != tables.end();
}

void add_ipc_bench_options(CLI::App& app, ipc_bench_texts& t) {
    app.add_option("--tables", t.tables,
                   "memory, hops, primitives, gpu-memory, gpu-hops, gpu-primitives [all]")
        ->type_name("NAME[,NAME...]")
        ->take_last();
    app.add_option("--processes", t.processes,
                   "Numbers of workers that use a primitive at once [1,2,4,8,16; quick: 1,4]")
        ->type_name("N[,N...]")
        ->take_last();
    app.add_option("--rounds", t.rounds, "Rounds of each row [5]")->type_name("N")->take_last();
    app.add_flag("--quick", t.quick, "3 short rounds, for a first impression");
    app.add_option("--json", t.json, "Write the results as JSON to FILE [stdout]")
        ->type_name("[FILE]")
        ->expected(0, 1);
    app.add_option("--plot", t.plot, "Write plots: GB/s over size, ns over workers")
        ->type_name("FILE.svg")
        ->take_last();
    app.footer(ipc_footer);
    app.callback([&app, &t] { t.wants_json = app.count("--json") > 0; });
}

ipc_bench_options read_options(const ipc_bench_texts& t) {
    ipc_bench_options o;
    o.quick = t.quick;
    if (t.quick) o.rounds = 3, o.round_ms = 20, o.hops = 2'000;
    if (t.rounds > most_ipc_rounds)
        throw config_error(
            fmt::format("--rounds: {} is not a number from 1 to {}", t.rounds, most_ipc_rounds));
    if (t.rounds > 0) o.rounds = t.rounds;
    for (const std::string& each : split_commas(!t.processes.empty() ? t.processes
                                                : t.quick            ? "1,4"
                                                                     : "1,2,4,8,16"))
        o.processes.push_back(count_from("--processes", each, most_processes));
    std::sort(o.processes.begin(), o.processes.end());
    o.tables = t.tables.empty() ? ipc_tables() : split_commas(t.tables);
    for (const std::string& each : o.tables)
        if (std::find(ipc_tables().begin(), ipc_tables().end(), each) == ipc_tables().end())
            throw config_error(fmt::format("--tables: \"{}\" is not one of {}{}", each,
                                           fmt::join(ipc_tables(), ", "),
                                           did_you_mean_clause(each, ipc_tables())));
    if (!t.plot.empty() && !t.plot.ends_with(".svg"))
        throw config_error(fmt::format("--plot: \"{}\" must end in .svg", t.plot));
    o.plot = t.plot;
    if (t.wants_json) o.json = t.json.empty() ? "-" : t.json;
    return o;
}

}  // namespace carousel::bench
