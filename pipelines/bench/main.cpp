// carousel-bench: the program that `carousel bench` starts; separate because it may load CUDA and OpenGL.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <optional>

#include "bench/ipc/run.hpp"
#include "bench/options.hpp"
#include "bench/pipeline_bench.hpp"
#include "bench/raster.hpp"
#include "core/errors.hpp"
#include "core/output_file.hpp"
#include "core/process.hpp"
#include "os/console.hpp"
#include "spec/programs.hpp"

namespace {

using namespace carousel;

/// The files of --json and --plot. They are opened before the measurement, so that a file that cannot be
/// written is reported at once, not after minutes.
class result_files {
public:
    result_files(const std::string& json, const std::string& plot) : json_on_stdout_(json == "-") {
        if (!json.empty() && !json_on_stdout_) json_.emplace(json);
        if (!plot.empty()) plot_.emplace(plot);
    }
    /// Writes the results to stdout, as a table or as JSON, and to the files.
    template <typename Result>
    void write(const Result& r) {
        if (plot_) plot_->write(bench::plot_of(r));
        if (json_) json_->write(bench::json_of(r));
        fmt::print("{}", json_on_stdout_ ? bench::json_of(r) : bench::table_of(r));
    }

private:
    bool json_on_stdout_;
    std::optional<output_file> json_, plot_;
};

/// A progress line on a terminal; each new line overwrites the previous one.
class progress_line {
public:
    void show(const std::string& what) {
        if (!terminal_) return;
        fmt::print(stderr, "\r\033[K{}", what);
        std::fflush(stderr);
    }
    ~progress_line() { show(""); }

private:
    bool terminal_ = supervisor::understands_escapes(STDERR_FILENO);
};

int run_raster(const bench::bench_options& o) {
    result_files files(o.json, o.plot);
    bench::bench_result r;
    {
        progress_line line;
        r = bench::run_raster(o, [&](const std::string& what) { line.show(what); });
    }
    files.write(r);
    return exit_code::ok;
}

int run_pipeline(const bench::pipeline_bench_options& o) {
    result_files files(o.json, o.plot);
    bench::pipeline_bench_result r;
    {
        progress_line line;
        r = bench::run_pipeline_bench(o, executable_folder(),
                                      [&](const std::string& what) { line.show(what); });
    }
    files.write(r);
    return exit_code::ok;
}

int run_ipc(const bench::ipc_bench_options& o) {
    result_files files(o.json, o.plot);
    bench::ipc_bench_result r;
    {
        progress_line line;
        r = bench::run_ipc_bench(o, executable_folder(), [&](const std::string& what) { line.show(what); });
    }
    files.write(r);
    const std::string wrong = bench::wrong_rows(r);
    if (!wrong.empty()) fmt::print(stderr, "error: wrong data in: {}\n", wrong);
    return wrong.empty() ? exit_code::ok : exit_code::stage_failed;
}

int run(int argc, char** argv) {
    CLI::App app("Measures the renderer's kernels, whole runs of a pipeline, or IPC", "carousel bench");
    bench::bench_words words;
    bench::add_bench_commands(app, words);
    try {
        if (argc > 1) bench::require_bench_command(argv[1]);
        app.parse(argc, argv);
        if (app.got_subcommand("ipc")) return run_ipc(bench::read_options(words.ipc));
        return app.got_subcommand("pipeline") ? run_pipeline(bench::read_options(words.pipeline))
                                              : run_raster(bench::read_options(words.raster));
    } catch (const CLI::CallForHelp&) {
        const auto chosen = app.get_subcommands();
        fmt::print("{}", chosen.empty() ? app.help() : chosen.front()->help());
        return exit_code::ok;
    } catch (const CLI::ParseError& e) {
        fmt::print(stderr, "error: carousel bench: {} (see `carousel bench --help`)\n", e.what());
        return exit_code::usage;
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return after_output(run(argc, argv));
    } catch (const bench::interrupted&) {
        fmt::print(stderr, "interrupted: no figures\n");
        return 128 + SIGINT;
    } catch (const error& e) {
        fmt::print(stderr, "error: {}\n", e.what());
        return e.code();
    } catch (const std::exception& e) {
        fmt::print(stderr, "error: {}\n", unexpected_text(e));
        return exit_code::stage_failed;
    }
}
