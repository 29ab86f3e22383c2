// `carousel validate` and `carousel graph`: the commands that show a pipeline file as it would run.

#include <fmt/format.h>

#include "cli/complete.hpp"
#include "cli/options.hpp"
#include "cli/start.hpp"
#include "control/client.hpp"
#include "core/json.hpp"
#include "graph/drawing.hpp"
#include "runs/client.hpp"
#include "shm/segment.hpp"
#include "supervisor/plan/device_fallback.hpp"
#include "supervisor/plan/hosts_plan.hpp"
#include "supervisor/plan/plan_text.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {
namespace {

// `carousel validate`.

using nlohmann::json;

struct validate_arguments {
    std::string file;
    pipeline_options keys;
};

int validate(const validate_arguments& a, bool as_json, const cli_environment& env) {
    const pipeline p = read_with_overrides(a.file, a.keys);
    const std::vector<stage_description> all = describe_stages(p);
    json plan = plan_json(p, all);
    std::string text = plan_text(p, all, columns_of(env));
    if (p.is_spread()) {
        std::vector<std::string> hosts{""};
        for (const host_spec* h : remote_hosts(p)) hosts.push_back(h->name);
        for (const std::string& host : hosts) (void)describe_stages(part_of(p, host, all, token_path(p)));
        plan["hosts"] = hosts_json(p);
        text += "\n" + hosts_text(p);
    }
    env.out << (as_json ? plan.dump(2, ' ', false, json::error_handler_t::replace) + "\n" : text);
    return exit_code::ok;
}

command_action add_validate_command(const command_parts& p) {
    const auto a = std::make_shared<validate_arguments>();
    add_pipeline_file(p, a->file);
    add_keys(p, a->keys);
    add_json(p);
    p.app.footer("\nExample:\n  carousel validate pipelines/demo.toml --size 640x480");
    return [a](const common_words& c, const cli_environment& env) { return validate(*a, c.json, env); };
}

// `carousel graph`: draws a pipeline file as it would run, or a running pipeline.

constexpr const char* graph_footer = R"(
Examples:
  carousel graph pipelines/demo.toml | dot -Tsvg -o demo.svg
  carousel graph pipelines/demo.toml --format mermaid
  carousel graph -p demo --live           a running pipeline, with states, frames/s and lag

Exit codes: 0; 2 a bad file or no such pipeline.)";

struct graph_arguments {
    std::string file, pipeline, format = "dot";
    bool live = false;
};

drawing drawing_of_file(const graph_arguments& a) {
    const pipeline p = read_pipeline(a.file);
    run_options o;
    o.hooks = test_hooks::of_environment();
    o.stages = describe_stages(p);
    // a drawing does not need the devices that a file names
    return drawing_of(setup_from(p, o, with_wanted_gpus(probe_for(p), p)));
}

drawing drawing_of_run(const graph_arguments& a) {
    const run::record run = choose_pipeline(a.pipeline, 0);
    const run::ps_answer ps = run::read_ps(run::client(run).ask(run::ps_request{}));
    if (!a.live) return drawing_of(ps, nullptr);
    const telemetry::snapshot now = telemetry::read_snapshot(shm::segment::observe(run.run_id).block());
    return drawing_of(ps, &now);
}

int draw(const graph_arguments& a, const cli_environment& env) {
    if (!a.file.empty() && (a.live || !a.pipeline.empty()))
        throw config_error(fmt::format("graph: a file ({}) or a running pipeline ({}), not both", a.file,
                                       a.pipeline.empty() ? "--live" : "-p " + a.pipeline));
    if (a.file.empty() && a.pipeline.empty() && !a.live)
        throw config_error("graph: expected a FILE, or -p NAME for a running pipeline");
    const drawing d = a.file.empty() ? drawing_of_run(a) : drawing_of_file(a);
    env.out << (a.format == "mermaid" ? mermaid_text(d) : dot_text(d));
    return exit_code::ok;
}

command_action add_graph_command(const command_parts& p) {
    const auto a = std::make_shared<graph_arguments>();
    p.offers[p.app.add_option("FILE", a->file, "Pipeline file (TOML); or -p for a running pipeline")] =
        offer_files({".toml"});
    p.offers[p.app.add_option("-p,--name", a->pipeline, "A running pipeline")->type_name("NAME")] =
        running_pipelines;
    const std::vector<std::string> formats{"dot", "mermaid"};
    CLI::Option* o = p.app.add_option("--format", a->format, "dot | mermaid [dot]")
                         ->check(CLI::IsMember(formats))
                         ->take_last();
    p.offers[o] = offer(formats);
    p.app.add_flag("--live", a->live, "Also show states, frames/s and lag (of a running pipeline)");
    p.app.footer(graph_footer);
    return [a](const common_words&, const cli_environment& env) { return draw(*a, env); };
}

}  // namespace

extern const command validate_command{
    "validate", "Check a pipeline file, its stages' settings and their wiring; start nothing",
    add_validate_command};

extern const command graph_command{"graph", "Draw a pipeline as text for Graphviz or Mermaid",
                                   add_graph_command};

}  // namespace carousel::supervisor
