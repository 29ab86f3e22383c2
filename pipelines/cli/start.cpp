#include "cli/start.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/detach.hpp"
#include "core/address.hpp"
#include "core/json.hpp"
#include "os/console.hpp"
#include "runs/spaces.hpp"
#include "spec/pipeline_keys.hpp"
#include "supervisor/plan/depth_plan.hpp"
#include "supervisor/plan/plan_text.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "supervisor/web/dashboard.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

/// Throws config_error if --first is not a frame number, or not below the number of frames.
u64 first_from(const start_arguments& a, const pipeline& p) {
    if (a.first.empty()) return 0;
    const json value = value_from(a.first);
    constexpr number_range range{0, static_cast<f64>(max_frames), "frames"};
    if (!value.is_number_integer() || !range.contains(value.get<f64>()))
        throw config_error(
            fmt::format("--first {}: expected a frame number from 0 to {}", a.first, max_frames));
    const u64 first = value.get<u64>();
    if (p.frames != 0 && first >= p.frames)
        throw config_error(
            fmt::format("--first {}: the run ends after {} frames (numbers count from 0)", first, p.frames));
    return first;
}

int start_in_background(const start_arguments& a, const cli_environment& env, const pipeline& p) {
    detach_request d{p.name, a.words, own_command()};
    d.words.insert(d.words.begin() + 1, "--in-background");
    d.patience_s += a.wait_s;
    return run_in_background(d, env.out, env.err);
}

}  // namespace

void add_start_options(const command_parts& p, start_arguments& a) {
    CLI::App& app = p.app;
    app.add_flag("-d,--detach", a.detach, "Run in the background; returns when all stages are ready");
    app.add_flag("--in-background", a.in_background)->group("");  // used by -d
    add_report(p, a.report, "Write the run's report (JSON) to FILE");
    app.add_flag("--keep-logs", a.keep_logs, "Keep the logs after the end, for `carousel logs` [with -d]");
    add_no_color(p, a.no_color);
    app.add_flag("--dry-run", a.dry_run, "Check everything, print the plan and its memory; start nothing");
    app.add_flag("--fresh", a.fresh,
                 "End a run of this name that has lost its supervisor instead of taking it over");
    app.add_option("--seconds", a.seconds, "End after S seconds, like Ctrl-C [0: never]")->type_name("S");
    app.add_option("--first", a.first,
                   "Begin with frame N, to continue a lost run that delivered all frames below N [0]")
        ->type_name("N")
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

/// The file's "keep" is meant for runs without an end: a run with a given number of frames keeps the pictures
/// of all its frames.
pipeline read_with_overrides(const std::string& file, const pipeline_options& keys) {
    pipeline p = read_pipeline(file, overrides_from(keys));
    if (!keys.frames || p.frames == 0) return p;
    for (stage_spec& s : p.stages) {
        const bool display = std::filesystem::path(s.run).filename() == "carousel-display";
        if (display && s.settings.contains("keep") && s.position_of("keep").option.empty())
            s.settings["keep"] = 0;
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
    o.seconds = a.seconds_s;
    o.keep_logs = a.keep_logs || a.in_background;
    o.background = a.in_background;
    o.wait_s = a.wait_s;
    o.fresh = a.fresh;
    o.command_line = a.words;
    o.hooks = test_hooks::of_environment();
    for (const std::string& host : a.http_hosts) check_http_host(host);
    if (!a.http.empty()) {  // refused here, before the run starts
        (void)parse_http_address(a.http);
        (void)dashboard_program();
    } else if (!a.http_hosts.empty()) {
        throw config_error("--http-host needs --http: it names this machine in the address of the web UI");
    }
    o.extensions.push_back(std::make_shared<web_extension>(a.http, a.http_hosts));
    if (auto space = space_of_run()) o.extensions.push_back(std::move(space));
    return o;
}

void show_plan(const cli_environment& env, const pipeline& p, run_options o) {
    o.stages = describe_stages(p);  // a run describes its stages after it has acquired its lock
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

}  // namespace carousel::supervisor
