// `carousel run`, `carousel up FILE` and `carousel validate`: everything is read and checked before anything is started.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/cli.hpp"
#include "cli/detach.hpp"
#include "cli/profile.hpp"
#include "core/http_address.hpp"
#include "os/own_command.hpp"
#include "supervisor/engine/web_page.hpp"
#include "supervisor/plan/plan_text.hpp"
#include "supervisor/plan/setup_from.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

/// "demo.toml" is a file even if it isn't there; other words are files if there are such.
bool is_file_word(const std::string& word) {
    std::error_code failed;
    return word.ends_with(".toml") || std::filesystem::is_regular_file(word, failed);
}

/// Options of `up` that only a start of a pipeline can take; "" when there are none.
std::string start_option(const cli_arguments& a) {
    const pipeline_options& k = a.keys;
    const std::pair<bool, const char*> given[] = {{k.device.has_value(), "--device"}, {k.frames.has_value(), "--frames"},
                                                  {k.fps.has_value(), "--fps"},       {k.size.has_value(), "--size"},
                                                  {k.mesh.has_value(), "--mesh"},     {!k.out.empty(), "--out"},
                                                  {k.keep.has_value(), "--keep"},
                                                  {!k.set.empty(), "--set"},          {!a.report.empty(), "--report"},
                                                  {k.allow_dead_letters.has_value(), "--allow-dead-letters"}, {a.dry_run, "--dry-run"},           {a.detach, "--detach"},
                                                  {a.keep_logs, "--keep-logs"},       {a.seconds > 0, "--seconds"}};
    for (const auto& [is, name] : given)
        if (is) return name;
    return "";
}

/// The file's "keep" is for runs without an end: one that is told how many frames to make leaves the pictures of all of them.
pipeline read_as_asked(const cli_arguments& a) {
    pipeline p = read_pipeline(a.file, overrides_from(a.keys));
    if (!a.keys.frames || p.frames == 0) return p;
    for (stage_spec& s : p.stages) {
        const bool display = std::filesystem::path(s.run).filename() == "carousel-display";
        if (display && s.settings.contains("keep") && s.position_of("keep").option.empty()) s.settings["keep"] = 0;
    }
    return p;
}

/// Below forty columns nothing could be told in order: a terminal that narrow breaks the lines itself.
std::size_t columns_of(const cli_environment& env) { return env.columns == 0 ? paper_columns : std::max<std::size_t>(40, env.columns); }

int start_in_background(const cli_arguments& a, const cli_environment& env, const pipeline& p) {
    detach_request d{p.name, a.words, own_command()};
    d.words.insert(d.words.begin() + 1, "--in-background");
    d.patience_s += a.wait_s;
    return run_in_background(d, env.out, env.err);
}

}  // namespace

int cli_validate(const cli_arguments& a, const cli_environment& env) {
    const pipeline p = read_as_asked(a);
    const std::vector<stage_description> all = describe_stages(p);
    env.out << (a.json ? plan_json(p, all).dump(2, ' ', false, json::error_handler_t::replace) + "\n" : plan_text(p, all, columns_of(env)));
    return exit_code::ok;
}

namespace {

int run_or_show(const cli_arguments& a, const cli_environment& env, const pipeline& p);

/// Everything but the profile is checked before the profiler starts.
int run_profiled(const cli_arguments& a, const cli_environment& env) {
    const profile_request wanted = profile_from(a.profile);
    if (a.detach) throw config_error("--profile and --detach: a profiled run stays in this terminal");
    cli_arguments below = a;
    below.profile.clear();
    if (wanted.tool == "nsys") {
        const pipeline p = read_as_asked(a);
        (void)describe_stages(p);
        return a.dry_run ? run_or_show(below, env, p) : run_below_nsys(a, p.name, env);
    }
    const std::string name = read_as_asked(a).name;
    const std::string report = (std::filesystem::current_path() / fmt::format("{}-{}", name, wanted.stage)).string();
    below.keys.set.push_back(ncu_prefix(profiler_path("ncu"), report, wanted.stage));
    std::error_code ignored;
    if (!a.dry_run) std::filesystem::remove(report + ".ncu-rep", ignored);
    const int code = run_or_show(below, env, read_as_asked(below));
    if (!a.dry_run) say_ncu_report(report, env);
    return code;
}

}  // namespace

int cli_run(const cli_arguments& a, const cli_environment& env) {
    if (!a.profile.empty()) return run_profiled(a, env);
    return run_or_show(a, env, read_as_asked(a));
}

namespace {

int run_or_show(const cli_arguments& a, const cli_environment& env, const pipeline& p) {
    if (a.detach && !a.in_background && !a.dry_run) return start_in_background(a, env, p);
    run_options o;
    if (a.dry_run) o.stages = describe_stages(p);  // a run asks them once it holds its lock
    o.report_file = a.report;
    o.color = wants_color(env.err_is_terminal, a.no_color);
    o.seconds = a.seconds;
    o.keep_logs = a.keep_logs || a.in_background;
    o.background = a.in_background;
    o.wait_s = a.wait_s;
    o.fresh = a.fresh;
    o.command_line = a.words;
    o.http = a.http;
    if (!a.http.empty()) {  // refused now, not in the middle of the run's log
        (void)parse_http_address(a.http);
        (void)page_program();
    }
    if (!a.dry_run) return env.run(p, o);
    env.out << plan_text(p, o.stages, columns_of(env)) << placement_text(setup_from(p, o, probe_for(p)), columns_of(env));
    return exit_code::ok;
}

}  // namespace

int cli_up(const cli_arguments& a, const cli_environment& env) {
    cli_arguments run = a;
    for (const std::string& word : a.stages) {
        if (!is_file_word(word)) continue;
        if (a.stages.size() > 1)
            throw config_error(fmt::format("up: {} is a pipeline file, which goes alone: `up FILE` starts a pipeline, `up STAGE...` "
                                           "starts stages of a running one",
                                           word));
        run.file = word;
        if (!a.pipeline.empty()) run.keys.name = a.pipeline;
        return cli_run(run, env);
    }
    if (const std::string option = start_option(a); !option.empty())
        throw config_error(fmt::format("up: {} goes with a pipeline file, and {} is none: expected a name that ends in .toml, or a file "
                                       "that is there",
                                       option, a.stages.front()));
    return cli_tell(a, env);
}

}  // namespace carousel::supervisor
