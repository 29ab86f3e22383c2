// carousel-bench: what `carousel bench` starts; a program of its own because it may load CUDA and OpenGL.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>

#include "bench/options.hpp"
#include "bench/plot.hpp"
#include "bench/raster.hpp"
#include "bench/report.hpp"
#include "core/errors.hpp"

namespace {

using namespace carousel;

void write_file(const std::string& path, const std::string& text) {
    std::ofstream out(path, std::ios::binary);
    out << text;
    out.flush();
    if (!out) throw output_error(fmt::format("writing {}: {}", path, errno_text(errno)));
}

/// One line of a terminal, written over and over.
class progress_line {
public:
    void say(const std::string& what) {
        if (!terminal_) return;
        fmt::print(stderr, "\r\033[K{}", what);
        std::fflush(stderr);
    }
    ~progress_line() { say(""); }

private:
    bool terminal_ = ::isatty(STDERR_FILENO) == 1;
};

int run(const bench::bench_options& o) {
    if (!o.json.empty() && o.json != "-") write_file(o.json, "");  // better now than after minutes
    if (!o.plot.empty()) write_file(o.plot, "");
    bench::bench_result r;
    {
        progress_line line;
        r = bench::run_raster(o, [&](const std::string& what) { line.say(what); });
    }
    if (!o.plot.empty()) write_file(o.plot, bench::plot_of(r));
    if (!o.json.empty() && o.json != "-") write_file(o.json, bench::json_of(r));
    fmt::print("{}", o.json == "-" ? bench::json_of(r) : bench::table_of(r));
    return std::fflush(stdout) == 0 ? exit_code::ok : exit_code::output;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Times the renderer's kernels, alone or beside another renderer", "carousel bench");
    bench::bench_texts texts;
    bench::add_bench_options(app, texts);
    try {
        app.parse(argc, argv);
        return run(bench::read_options(texts));
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        return exit_code::ok;
    } catch (const CLI::ParseError& e) {
        fmt::print(stderr, "error: carousel bench: {} (see `carousel bench --help`)\n", e.what());
        return exit_code::usage;
    } catch (const error& e) {
        fmt::print(stderr, "error: {}\n", e.what());
        return e.code();
    } catch (const std::exception& e) {
        fmt::print(stderr, "error: {}: this is a bug in Carousel\n", e.what());
        return exit_code::stage_failed;
    }
}
