// `carousel run`.

#include <fmt/format.h>

#include <filesystem>

#include "cli/completers.hpp"
#include "cli/profile.hpp"
#include "cli/start.hpp"
#include "core/user_input.hpp"
#include "spec/describe.hpp"

namespace carousel::supervisor {
namespace {

constexpr const char* run_footer = R"(
Examples:
  carousel run pipelines/demo.toml --device cpu --frames 200 --report r.json
  carousel run pipelines/mesh.toml --mesh bunny.obj --out ''
  carousel run pipelines/demo.toml --profile nsys --seconds 5
  carousel run pipelines/demo.toml --set geometry.triangles=1000 --set link.fragment.window=12 --set 'size=[640, 480]'

--set takes KEY (of [pipeline]), STAGE.KEY, parameters.KEY or link.STAGE.KEY; the value is written as in the file, quotes may be
left out. A relative path of a mesh or texture is relative to the working directory; in a pipeline file, to that file's folder.)";

struct run_arguments : start_arguments {
    std::string profile;  ///< nsys, ncu:STAGE
};

/// Everything except the profile is checked before the profiler starts.
int run_profiled(const run_arguments& a, const cli_environment& env) {
    const profile_request wanted = profile_from(a.profile);
    if (a.detach) throw config_error("--profile and --detach: a profiled run stays in this terminal");
    start_arguments below = a;
    if (wanted.tool == "nsys") {
        const pipeline p = read_with_overrides(a.file, a.keys);
        (void)describe_stages(p);
        return a.dry_run ? run_or_show(below, env, p) : run_below_nsys(a, p.name, env);
    }
    const std::string name = read_with_overrides(a.file, a.keys).name;
    const std::string report = (working_directory() / fmt::format("{}-{}", name, wanted.stage)).string();
    below.keys.set.push_back(ncu_prefix(profiler_path("ncu"), report, wanted.stage));
    std::error_code ignored;
    if (!a.dry_run) std::filesystem::remove(report + ".ncu-rep", ignored);
    const int code = run_or_show(below, env, read_with_overrides(below.file, below.keys));
    if (!a.dry_run) print_ncu_report(report, env);
    return code;
}

command_action add_run_command(const command_parts& p) {
    const auto a = std::make_shared<run_arguments>();
    add_pipeline_file(p, a->file);
    add_keys(p, a->keys);
    add_start_options(p, *a);
    p.app
        .add_option("--wait", a->wait,
                    "Wait up to S seconds for a running pipeline of the same name to end [0]")
        ->type_name("S");
    CLI::Option* o = p.app.add_option(
        "--profile", a->profile,
        "nsys: all stages on one timeline, in NAME.nsys-rep | ncu:STAGE: its kernels, in NAME-STAGE.ncu-rep");
    p.offers[o->type_name("TOOL")->take_last()] = offer({"nsys", "ncu:"});
    p.app.footer(run_footer);
    return [a](const common_words& c, const cli_environment& env) {
        read_times(*a);
        a->words = c.words;
        return a->profile.empty() ? run_or_show(*a, env, read_with_overrides(a->file, a->keys))
                                  : run_profiled(*a, env);
    };
}

}  // namespace

extern const command run_command{"run", "Run a pipeline until its end, Ctrl-C or `carousel down`",
                                 add_run_command};

}  // namespace carousel::supervisor
