// `carousel top` and `carousel view`: the commands that show a running pipeline.

#include "cli/options.hpp"
#include "core/address.hpp"
#include "runs/client.hpp"
#include "spec/programs.hpp"
#include "supervisor/web/dashboard.hpp"
#include "top/top.hpp"

namespace carousel::supervisor {
namespace {

// `carousel top` (top/top.hpp).

constexpr const char* top_footer = R"(
Examples:
  carousel top
  carousel top -p demo --interval 0.5
  carousel top --image                    with the newest picture, if the terminal has room for it
  carousel top --image-of scene/depth     with the picture of that plane
  carousel top --once                     print once, as text; also without a terminal, or with TERM=dumb

Keys: up and down select a stage, Enter lists its actions (pause, restart, kill, end, log), each of which asks first; s sets a parameter;
? explains keys and columns; space polls at once; q or Esc ends it. An action is the `carousel` command of that name, with its messages.
Slots of a ring: . free, w being written, R ready, r being read, d done, ! quarantined (of a dead process that may still write).
Exit codes: 0, also when the pipeline ends; 2 no such pipeline; 128+N signal N (Ctrl-C: 130).)";

struct top_arguments : client_arguments {
    top_options top;
    bool no_color = false;
    std::string interval;  ///< as given
};

command_action add_top_command(const command_parts& p) {
    const auto a = std::make_shared<top_arguments>();
    add_client_options(p, *a);
    p.app.add_option("--interval", a->interval, "Update every S seconds [1]")->type_name("S");
    p.app.add_flag("--image", a->top.image,
                   "Also show the newest picture, drawn with half blocks in 24-bit colours");
    p.app.add_option("--image-of", a->top.image_of, "Show the picture of another ring, or of another plane")
        ->type_name("STAGE[/PLANE]");
    p.app.add_flag("--once", a->top.once, "Print once and exit");
    add_no_color(p, a->no_color);
    p.app.footer(top_footer);
    return [a](const common_words&, const cli_environment& env) {
        read_wait(*a);
        a->top.interval_s = seconds_or("--interval", a->interval, a->top.interval_s);
        a->top.color = wants_color(env.out_is_terminal, a->no_color);
        a->top.on_terminal = env.out_is_terminal;
        return show_top(choose_watched(a->pipeline, a->wait_s), a->top, env.out);
    };
}

// `carousel view`: executes the dashboard program.

struct view_arguments {
    std::string pipeline, http;
    std::vector<std::string> http_hosts;
    bool metrics = false, read_only = false;
};

[[noreturn]] void exec_dashboard(const view_arguments& a, const cli_environment& env) {
    (void)parse_http_address(a.http);
    for (const std::string& host : a.http_hosts) check_http_host(host);
    const std::string program = dashboard_program();
    // If no run is alive, the dashboard waits for one; if several runs are alive, the user must choose one
    // here.
    if (a.metrics) exec_program({program, "--metrics", "-p", choose_pipeline(a.pipeline, 0).name}, env.out);
    if (a.pipeline.empty() && run::living_runs().size() > 1) (void)choose_pipeline(a.pipeline, 0);
    std::vector<std::string> words{program, "--http", a.http};
    if (!a.pipeline.empty()) words.insert(words.end(), {"-p", a.pipeline});
    for (const std::string& host : a.http_hosts) words.insert(words.end(), {"--http-host", host});
    if (a.read_only) words.emplace_back("--read-only");
    exec_program(std::move(words), env.out);
}

command_action add_view_command(const command_parts& p) {
    const auto a = std::make_shared<view_arguments>();
    add_run_name(p, a->pipeline);
    p.app.add_option("--http", a->http, "Where to serve, e.g. 8081 or 0.0.0.0:8080 [127.0.0.1:8080]")
        ->type_name("ADDR:PORT")
        ->take_last();
    add_http_hosts(p, a->http_hosts);
    p.app.add_flag("--metrics", a->metrics, "Print the metrics for Prometheus once, and exit; serve nothing");
    p.app.add_flag("--read-only", a->read_only,
                   "Send no command to the pipeline: the buttons and parameters are disabled");
    p.app.footer(
        "\n"
        "Examples:\n"
        "  carousel view -p demo --http 8081      then open the address that it prints\n"
        "  carousel view -p demo --read-only      for a screen that only shows the run\n"
        "  carousel view -p demo --metrics");
    return [a](const common_words&, const cli_environment& env) -> int {
        if (a->http.empty()) a->http = http_address().text();
        exec_dashboard(*a, env);
    };
}

}  // namespace

extern const command top_command{"top", "Show stages, rings and rates of a running pipeline, live",
                                 add_top_command};

extern const command view_command{
    "view", "Serve a web UI of a running pipeline until Ctrl-C; waits for a pipeline if none is running",
    add_view_command};

}  // namespace carousel::supervisor
