// `carousel view`: executes the dashboard program.

#include "cli/options.hpp"
#include "core/address.hpp"
#include "runs/client.hpp"
#include "spec/programs.hpp"
#include "supervisor/web/dashboard.hpp"

namespace carousel::supervisor {
namespace {

struct view_arguments {
    std::string pipeline, http;
    std::vector<std::string> http_hosts;
};

[[noreturn]] void exec_dashboard(const view_arguments& a, const cli_environment& env) {
    (void)parse_http_address(a.http);
    for (const std::string& host : a.http_hosts) check_http_host(host);
    const std::string program = dashboard_program();
    // If no run is alive the dashboard waits for one; if several are, the user must choose here.
    if (a.pipeline.empty() && run::living_runs().size() > 1) (void)choose_pipeline(a.pipeline, 0);
    std::vector<std::string> words{program, "--http", a.http};
    if (!a.pipeline.empty()) words.insert(words.end(), {"-p", a.pipeline});
    for (const std::string& host : a.http_hosts) words.insert(words.end(), {"--http-host", host});
    exec_program(std::move(words), env.out);
}

command_action add_view_command(const command_parts& p) {
    const auto a = std::make_shared<view_arguments>();
    add_run_name(p, a->pipeline);
    p.app.add_option("--http", a->http, "Where to serve, e.g. 8081 or 0.0.0.0:8080 [127.0.0.1:8080]")
        ->type_name("ADDR:PORT")
        ->take_last();
    add_http_hosts(p, a->http_hosts);
    p.app.footer("\nExample:\n  carousel view -p demo --http 8081      then open the address that it prints");
    return [a](const common_words&, const cli_environment& env) -> int {
        if (a->http.empty()) a->http = http_address().text();
        exec_dashboard(*a, env);
    };
}

}  // namespace

extern const command view_command{
    "view", "Serve a web UI of a running pipeline until Ctrl-C; waits for a pipeline if none is running",
    add_view_command};

}  // namespace carousel::supervisor
