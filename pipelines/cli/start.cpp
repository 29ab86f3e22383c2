// `carousel run` and `carousel up`.

#include "cli/start.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "cli/complete.hpp"
#include "cli/options.hpp"
#include "cli/profile.hpp"
#include "core/address.hpp"
#include "core/json.hpp"
#include "core/user_input.hpp"
#include "os/console.hpp"
#include "runs/spaces.hpp"
#include "spec/describe.hpp"
#include "spec/pipeline_keys.hpp"
#include "supervisor/plan/depth_plan.hpp"
#include "supervisor/plan/plan_text.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "supervisor/service/service_extension.hpp"
#include "supervisor/web/dashboard.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

/// The run reads its checkpoints itself, when no earlier run of its name can write any more.
bool is_first_checkpoint(const start_arguments& a, const pipeline& p) {
    if (a.first != "checkpoint") return false;
    if (p.checkpoint_every == 0)
        throw config_error(fmt::format(
            "--first checkpoint: {} makes no checkpoints: set checkpoint_every in [pipeline]", p.name));
    return true;
}

/// Throws config_error if --first is not a frame number, or if it is not below the number of frames.
u64 first_from(const start_arguments& a, const pipeline& p) {
    if (a.first.empty() || is_first_checkpoint(a, p)) return 0;
    const json value = value_from(a.first);
    constexpr number_range range{0, static_cast<f64>(max_frames), "frames"};
    if (!value.is_number_integer() || !range.contains(value.get<f64>()))
        throw config_error(fmt::format("--first {}: expected a frame number from 0 to {}, or checkpoint",
                                       a.first, max_frames));
    const u64 first = value.get<u64>();
    if (p.frames != 0 && first >= p.frames)
        throw config_error(
            fmt::format("--first {}: there is no such frame, because the run has {} frames, numbered from 0",
                        first, p.frames));
    return first;
}

int start_in_background(const start_arguments& a, const cli_environment& env, const pipeline& p) {
    detach_request d{p.name, a.words, own_command()};
    d.words.insert(d.words.begin() + 1, "--in-background");
    d.patience_s += a.wait_s;
    return run_in_background(d, env.out, env.err);
}

// `carousel run`.

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
    if (a.detach)
        throw config_error(
            "--profile and --detach can't be combined, because a profiled run stays in this terminal");
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

// `carousel up`: starts a pipeline file, or stages.

constexpr const char* up_footer = R"(
Examples:
  carousel up fragment                              undoes `down fragment`
  carousel up pipelines/demo.toml -d --frames 1000  a pipeline in the background; without -d like `carousel run`

With -d it returns when all stages are ready, and the pipeline continues after this terminal is closed. `carousel logs` shows its logs, also after
its end (until the next run of that name, or `carousel clean`). Exit codes: 0 started; otherwise the run's exit code, with its last
lines; 1 if a stage is not ready after 60 s (the pipeline continues). Ctrl-C meanwhile also ends the pipeline (130).)";

struct up_arguments {
    stage_request_arguments stages;
    start_arguments start;
};

/// A word like "demo.toml" counts as a file even if no such file exists; any other word counts as a file only
/// if such a file exists.
bool is_file_word(const std::string& word) {
    std::error_code failed;
    return word.ends_with(".toml") || std::filesystem::is_regular_file(word, failed);
}

/// Returns the first option on the command line of `up` that needs a pipeline file; "" if there is no such
/// option.
std::string start_option(const start_arguments& a) {
    const pipeline_options& k = a.keys;
    const std::pair<bool, const char*> given[] = {{k.device.has_value(), "--device"},
                                                  {k.frames.has_value(), "--frames"},
                                                  {k.fps.has_value(), "--fps"},
                                                  {k.size.has_value(), "--size"},
                                                  {k.mesh.has_value(), "--mesh"},
                                                  {!k.out.empty(), "--out"},
                                                  {k.keep.has_value(), "--keep"},
                                                  {!k.set.empty(), "--set"},
                                                  {!k.record.empty(), "--record"},
                                                  {k.record_to.has_value(), "--record-to"},
                                                  {!a.report.empty(), "--report"},
                                                  {k.allow_dead_letters.has_value(), "--allow-dead-letters"},
                                                  {a.dry_run, "--dry-run"},
                                                  {a.detach, "--detach"},
                                                  {a.keep_logs, "--keep-logs"},
                                                  {a.seconds_s > 0, "--seconds"},
                                                  {!a.first.empty(), "--first"},
                                                  {k.insecure, "--insecure"},
                                                  {!a.http.empty(), "--http"},
                                                  {!a.http_hosts.empty(), "--http-host"},
                                                  {a.quiet, "--quiet"}};
    for (const auto& [is, name] : given)
        if (is) return name;
    return "";
}

int bring_up(const up_arguments& a, const cli_environment& env) {
    for (const std::string& word : a.stages.stages) {
        if (!is_file_word(word)) continue;
        if (a.stages.stages.size() > 1)
            throw config_error(
                fmt::format("up: {} is a pipeline file and must be the only argument: `up FILE` starts a "
                            "pipeline, `up STAGE...` starts stages of a running pipeline",
                            word));
        start_arguments start = a.start;
        start.file = word;
        if (!a.stages.pipeline.empty()) start.keys.name = a.stages.pipeline;
        return run_or_show(start, env, read_with_overrides(start.file, start.keys));
    }
    if (const std::string option = start_option(a.start); !option.empty())
        throw config_error(
            fmt::format("up: {} needs a pipeline file, but {} is not one: expected a name that ends in "
                        ".toml, or an existing file",
                        option, a.stages.stages.front()));
    return send_to_stages(a.stages, run::seat_request{run::seat_order::up, ""}, env);
}

std::vector<std::string> stages_and_files(const completion_request& request) {
    std::vector<std::string> all = running_stages(request);
    for (std::string& file : offer_files({".toml"})(request)) all.push_back(std::move(file));
    return all;
}

command_action add_up_command(const command_parts& p) {
    const auto a = std::make_shared<up_arguments>();
    add_client_options(p, a->stages);
    CLI::Option* o = p.app.add_option(
        "STAGE", a->stages.stages,
        "Stages of a running pipeline; or one pipeline file: a name that ends in .toml, or an existing file");
    p.offers[o->required()] = stages_and_files;
    add_keys(p, a->start.keys, false);
    add_start_options(p, a->start);
    p.app.footer(up_footer);
    return [a](const common_words& c, const cli_environment& env) {
        a->start.wait = a->stages.wait;
        a->start.words = c.words;
        read_wait(a->stages);
        read_times(a->start);
        return bring_up(*a, env);
    };
}

}  // namespace

void add_start_options(const command_parts& p, start_arguments& a) {
    CLI::App& app = p.app;
    app.add_flag("-d,--detach", a.detach, "Run in the background; returns when all stages are ready");
    app.add_flag("--in-background", a.in_background)->group("");  // used by -d
    add_report(p, a.report, "Write the run's report (JSON) to FILE");
    app.add_flag("--keep-logs", a.keep_logs, "Keep the logs after the end, for `carousel logs` [with -d]");
    add_no_color(p, a.no_color);
    app.add_flag("--quiet", a.quiet,
                 "Print warnings and errors only, and the result if the run fails; `carousel logs` has all");
    app.add_flag("--dry-run", a.dry_run, "Check everything, print the plan and its memory; start nothing");
    app.add_flag("--fresh", a.fresh,
                 "End a run of this name that has lost its supervisor instead of taking it over");
    app.add_option("--seconds", a.seconds, "End after S seconds, like Ctrl-C [0: never]")->type_name("S");
    app.add_option(
           "--first", a.first,
           "Begin with frame N, to continue a lost run that delivered all frames below N, or at the newest "
           "checkpoint [0]")
        ->type_name("N|checkpoint")
        ->take_last();
    app.add_option("--http", a.http, "Serve a web UI of the run, e.g. 127.0.0.1:8080 or 8080")
        ->type_name("ADDR:PORT")
        ->take_last();
    add_http_hosts(p, a.http_hosts);
}

void read_times(start_arguments& a) {
    a.wait_s = seconds_or("--wait", a.wait, a.wait_s);
    a.seconds_s = seconds_or("--seconds", a.seconds, a.seconds_s);
}

/// The key "keep" of the file is meant for runs without an end. If the command line gives a number of frames,
/// the run keeps the pictures of all its frames.
pipeline read_with_overrides(const std::string& file, const pipeline_options& keys) {
    pipeline p = read_pipeline(file, overrides_from(keys));
    if (!keys.frames || p.frames == 0) return p;
    for (stage_spec& s : p.stages) {
        const bool display = std::filesystem::path(s.run).filename() == "carousel-display";
        if (!display || !s.settings.contains("keep") || !s.position_of("keep").option.empty()) continue;
        s.settings["keep"] = 0;
        p.overrides.push_back({"--frames " + *keys.frames, s.name + ".keep", 0, key_override::scope::path});
    }
    return p;
}

std::size_t columns_of(const cli_environment& env) {
    return env.columns == 0 ? paper_columns : std::max<std::size_t>(40, env.columns);
}

run_options options_of(const start_arguments& a, const pipeline& p, const cli_environment& env) {
    run_options o;
    o.report_file = a.report;
    o.color = wants_color(env.err_is_terminal, a.no_color);
    o.first = first_from(a, p);
    o.first_is_checkpoint = is_first_checkpoint(a, p);
    o.seconds = a.seconds_s;
    o.keep_logs = a.keep_logs || a.in_background;
    o.background = a.in_background;
    o.quiet = a.quiet;
    o.wait_s = a.wait_s;
    o.fresh = a.fresh;
    o.command_line = a.words;
    o.hooks = test_hooks::of_environment();
    for (const std::string& host : a.http_hosts) check_http_host(host);
    if (!a.http.empty()) {  // a wrong address is refused here, before the run starts
        (void)parse_http_address(a.http);
        (void)dashboard_program();
    } else if (!a.http_hosts.empty()) {
        throw config_error(
            "--http-host needs --http, because it only names this machine in the address of the web UI");
    }
    o.extensions.push_back(std::make_shared<web_extension>(a.http, a.http_hosts));
    o.extensions.push_back(std::make_shared<service_extension>(notify_socket::of_environment()));
    if (auto space = space_of_run()) o.extensions.push_back(std::move(space));
    return o;
}

void show_plan(const cli_environment& env, const pipeline& p, run_options o) {
    o.stages = describe_stages(p);  // unlike here, a run describes its stages only after it has acquired its
                                    // lock
    const machine_offer machine = probe_for(p);
    const run_setup s = setup_from(p, o, machine);
    require_room(s, free_memory_of(machine));
    env.out << plan_text(p, o.stages, columns_of(env)) << placement_text(s, columns_of(env));
}

int run_or_show(const start_arguments& a, const cli_environment& env, const pipeline& p) {
    if (a.detach && !a.in_background && !a.dry_run) return start_in_background(a, env, p);
    if (p.is_spread()) return run_over_hosts(a, env, p);
    const run_options o = options_of(a, p, env);
    if (!a.dry_run) return env.run(p, o);
    show_plan(env, p, o);
    return exit_code::ok;
}

extern const command run_command{"run", "Run a pipeline until its end, Ctrl-C or `carousel down`",
                                 add_run_command};

extern const command up_command{
    "up", "Start stages that are down or have failed; with a pipeline file: start a pipeline",
    add_up_command};

}  // namespace carousel::supervisor
