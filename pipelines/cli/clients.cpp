// The subcommands that talk to a running pipeline.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/cli.hpp"
#include "core/did_you_mean.hpp"
#include "os/subprocess.hpp"
#include "os/table.hpp"
#include "run/answer_message.hpp"
#include "run/client.hpp"
#include "runs/client.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

/// A refusal's own code, where it is one that a program can end with.
int code_of(const run::verdict& v) {
    const i64 code = v.code.value_or(0);
    return code > 0 && code < 126 ? static_cast<int>(code) : exit_code::stage_failed;
}

}  // namespace

void require_well(const json& reply, const std::string& pipeline) {
    if (const run::verdict v = run::read_verdict(reply); !v.ok)
        throw error(code_of(v),
                    v.message.value_or(fmt::format("pipeline \"{}\" refused, without a reason", pipeline)));
}

int cli_ps(const cli_arguments& a, const cli_environment& env) {
    const run::record run = choose_pipeline(a.pipeline, a.wait_s);
    const json reply = run::client(run).ask(run::ps_request{}, a.wait_s);
    require_well(reply, run.name);
    env.out << (a.json ? reply.dump(2, ' ', false, json::error_handler_t::replace) + "\n"
                       : ps_table(run::read_ps(reply)));
    return exit_code::ok;
}

int cli_tell(const cli_arguments& a, const cli_environment& env) {
    run::request request = run::ps_request{};
    if (const auto order = run::seat_order_named(a.command)) request = run::seat_request{*order, ""};
    if (a.command == "kill") {
        const int number = signal_from(a.signal);
        if (number == 0)
            throw config_error(
                fmt::format("--signal {}: no signal of this system; expected e.g. KILL, TERM, ABRT or a number", a.signal));
        request = run::kill_request{"", number};
    }
    if (a.command == "inject") {
        const std::vector<std::string> known{"hang", "gpu-fault", "exit", "abort"};
        if (std::find(known.begin(), known.end(), a.fault) == known.end())
            throw config_error(fmt::format("--fault {}: no such fault; expected {}{}", a.fault, fmt::join(known, ", "), did_you_mean_clause(a.fault, known)));
        request = run::inject_request{"", shm::fault_named(a.fault)};
    }
    const run::record run = choose_pipeline(a.pipeline, a.wait_s);
    if (a.stages.empty()) {  // `down` alone
        end_pipeline(run, a.timeout_s);
        env.out << fmt::format("pipeline \"{}\" has ended\n", run.name);
        return exit_code::ok;
    }
    int code = exit_code::ok;
    for (const std::string& stage : a.stages) {
        const run::verdict v =
            run::read_verdict(run::client(run).ask(run::of_stage(request, stage), a.wait_s));
        if (v.ok) {
            env.out << printable(v.message.value_or(fmt::format("{} {}", a.command, stage))) << "\n";
            continue;
        }
        env.err << "error: "
                << v.message.value_or(fmt::format("pipeline \"{}\" refused, without a reason", run.name))
                << "\n";
        if (code == exit_code::ok) code = code_of(v);
    }
    return code;
}

}  // namespace carousel::supervisor
