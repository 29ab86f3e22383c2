// `carousel bench`: executes carousel-bench, which may load CUDA and OpenGL.

#include "bench/options.hpp"
#include "cli/command.hpp"
#include "cli/complete.hpp"
#include "core/errors.hpp"
#include "spec/programs.hpp"

namespace carousel::supervisor {
namespace {

[[noreturn]] void exec_bench(const std::vector<std::string>& all, const cli_environment& env) {
    std::vector<std::string> words{program_of_ours("carousel-bench", executable_folder())};
    words.insert(words.end(), all.begin() + 1, all.end());  // after "bench"
    exec_program(std::move(words), env.out);
}

void add_offers(CLI::App& bench, completers& offers) {
    const auto to = [&](const char* command, const char* option, completer offered) {
        offers[bench.get_subcommand(command)->get_option(option)] = std::move(offered);
    };
    for (const char* command : {"raster", "pipeline"}) {
        to(command, "--device", offer({"auto", "cpu", "cuda:0"}));
        to(command, "--size", offer({"640x480", "1280x720", "1920x1080", "3840x2160"}));
        to(command, "--json", offer_files({""}));
    }
    for (const char* option : {"--scene", "--peer", "--simd"})
        to("raster", option, offer(bench::choices_of(option)));
    to("raster", "--plot", offer_files({".svg"}));
    to("raster", "--picture", offer_files({""}));
    to("pipeline", "FILE", offer_files({".toml"}));
    to("pipeline", "--against", offer_folders());
    to("pipeline", "--modes",
       offer({"mps", "none", "process", "free", "none,process,mps", "none,process,free,mps", "process,mps"}));
    to("pipeline", "--depths", offer({"auto", "auto,3,14/16"}));
    to("pipeline", "--plot", offer_files({".svg"}));
    to("pipeline", "--out", offer_files({""}));
    to("ipc", "--tables", offer(bench::ipc_tables()));
    to("ipc", "--json", offer_files({""}));
    to("ipc", "--plot", offer_files({".svg"}));
}

void preparse_bench(const std::vector<std::string>& words) {
    if (!words.empty()) bench::require_bench_command(words.front());
}

command_action add_bench_command(const command_parts& p) {
    const auto a = std::make_shared<bench::bench_words>();
    bench::add_bench_commands(p.app, *a);
    add_offers(p.app, p.offers);
    return [a, &app = p.app](const common_words& c, const cli_environment& env) -> int {
        (void)bench::check_bench_command(app, *a);
        exec_bench(c.words, env);
    };
}

}  // namespace

extern const command bench_command{
    "bench", "Measure the renderer's kernels, whole runs of a pipeline, or IPC", add_bench_command,
    preparse_bench,
    "  carousel bench raster --peer opengl               measure rendering, compared with OpenGL\n"
    "  carousel bench pipeline pipelines/demo.toml       measure the whole pipeline\n"};

}  // namespace carousel::supervisor
