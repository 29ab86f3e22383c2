// `carousel ps`: the state of a pipeline, and of the spaces of this user.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/complete.hpp"
#include "cli/options.hpp"
#include "control/client.hpp"
#include "core/clock.hpp"
#include "core/json.hpp"
#include "os/table.hpp"
#include "run/liveness.hpp"
#include "runs/client.hpp"
#include "runs/spaces.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
constexpr u32 run_poll_us = 20'000;

bool runs(const std::string& name) {
    const std::vector<run::record> all = run::living_runs();
    return name.empty()
               ? !all.empty()
               : std::any_of(all.begin(), all.end(), [&](const run::record& r) { return r.name == name; });
}

std::string dumped(const json& j) { return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n"; }

struct ps_arguments : client_arguments {
    bool all = false, check = false;
};

/// Lists every run of this user: living runs, and lost runs of which data was kept. Sends no request to a
/// supervisor.
int list_all(const ps_arguments& a, bool as_json, const cli_environment& env) {
    json living = json::array(), lost = json::array();
    std::string text;
    for (const run::record& r : run::living_runs()) {
        if (!a.pipeline.empty() && r.name != a.pipeline) continue;
        living.push_back(
            {{"name", r.name}, {"pid", r.supervisor.pid}, {"run_id", r.run_id}, {"file", r.file}});
        text += printable(fmt::format("{}: running, pid {}, {}", r.name, r.supervisor.pid, r.file)) + "\n";
    }
    for (const run::lost_run& r : run::lost_runs(a.pipeline)) {
        lost.push_back(
            {{"name", r.name}, {"run_id", r.run_id}, {"folder", r.folder}, {"account", r.account}});
        text += printable(run::describe(r)) + "\n";
    }
    env.out << (as_json        ? dumped({{"ok", true}, {"running", living}, {"lost", lost}})
                : text.empty() ? "no runs and no lost runs\n"
                               : text);
    return exit_code::ok;
}

/// Prints the causes for an alert, one per line; returns the exit code.
int check(const run::ps_answer& answer, const cli_environment& env, bool prints) {
    std::vector<std::string> found = answer.problems;
    const std::string state = answer.pipeline.state.value_or("");
    // A pause is reported as a problem only after one second.
    if (found.empty() && (state == "paused" || state == "waiting"))
        found.push_back(answer.pipeline.state_text.value_or(state));
    if (prints)
        for (const std::string& each : found) env.out << each << "\n";
    return found.empty() ? exit_code::ok : exit_code::stage_failed;
}

int show(const ps_arguments& a, bool as_json, const cli_environment& env) {
    const u64 since = now_ns(), until = since + static_cast<u64>(std::clamp(a.wait_s, 0.0, 1e9) * 1e9);
    spaces_report spaces = report_spaces(a.pipeline);
    while (!runs(a.pipeline) && spaces.empty() && now_ns() < until) {
        ::usleep(run_poll_us);
        spaces = report_spaces(a.pipeline);
    }
    if (!runs(a.pipeline) && !spaces.empty()) {
        env.out << (as_json ? dumped({{"ok", true}, {"spaces", spaces.rows}}) : spaces.text);
        return exit_code::ok;
    }
    const run::record run = choose_pipeline(a.pipeline, a.wait_s, since);
    json reply = run::client(run).ask(run::ps_request{}, a.wait_s);
    require_well(reply, run.name);
    if (as_json) {
        reply["spaces"] = spaces.rows;
        env.out << dumped(reply);
    } else if (!a.check) {
        env.out << ps_table(run::read_ps(reply));
        if (!spaces.empty()) env.out << "\n" << spaces.text;
    }
    return a.check ? check(run::read_ps(reply), env, !as_json) : exit_code::ok;
}

command_action add_ps_command(const command_parts& p) {
    const auto a = std::make_shared<ps_arguments>();
    add_client_options(p, *a);
    p.app.add_flag("--all", a->all, "List all runs, including lost ones (their supervisor died)");
    p.app.add_flag("--check", a->check, "For alerts: print only problems, and exit with 1 if there are any");
    p.offers[p.app.get_option("--name")] = pipelines_and_spaces;
    add_json(p);
    p.app.footer(
        "\n"
        "Spaces (`carousel hold`) are listed after the pipeline, with their clients and what each holds; -p "
        "names a pipeline or a space.\n"
        "\n"
        "Examples:\n"
        "  carousel ps\n"
        "  carousel ps -p demo --json\n"
        "  carousel ps -p lab\n"
        "  carousel ps --all\n"
        "  carousel ps -p demo --check || notify\n"
        "\n"
        "Exit codes: 0 shown; with --check: no problem; 1 with --check: a problem persists, or\n"
        "a stage is paused or missing; 2 no such pipeline, or usage; 74 its supervisor does not answer.");
    return [a](const common_words& c, const cli_environment& env) {
        read_wait(*a);
        return a->all ? list_all(*a, c.json, env) : show(*a, c.json, env);
    };
}

}  // namespace

extern const command ps_command{
    "ps", "Show the stages of a running pipeline, and the spaces with their clients", add_ps_command};

}  // namespace carousel::supervisor
