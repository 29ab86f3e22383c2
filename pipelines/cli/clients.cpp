// The subcommands that talk to a running pipeline.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/cli.hpp"
#include "core/did_you_mean.hpp"
#include "os/subprocess.hpp"
#include "os/table.hpp"
#include "runs/client.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

/// A refusal's own code, where it is one that a program can end with.
int code_of(const json& reply) {
    const auto at = reply.find("code");
    if (at == reply.end() || !at->is_number_integer()) return exit_code::stage_failed;
    const i64 code = at->get<i64>();
    return code > 0 && code < 126 ? static_cast<int>(code) : exit_code::stage_failed;
}

std::string message_of(const json& reply, const std::string& otherwise) {
    const auto at = reply.find("message");
    return at != reply.end() && at->is_string() ? at->get<std::string>() : otherwise;
}

bool is_well(const json& reply) {
    const auto at = reply.find("ok");
    return at != reply.end() && at->is_boolean() && at->get<bool>();
}

}  // namespace

void require_well(const json& reply, const std::string& pipeline) {
    if (!is_well(reply))
        throw error(code_of(reply), message_of(reply, fmt::format("pipeline \"{}\" refused, without a reason", pipeline)));
}

int cli_ps(const cli_arguments& a, const cli_environment& env) {
    const run::record run = choose_pipeline(a.pipeline, a.wait_s);
    const json reply = ask_pipeline(run, {{"command", "ps"}}, a.wait_s);
    require_well(reply, run.name);
    env.out << (a.json ? reply.dump(2, ' ', false, json::error_handler_t::replace) + "\n" : ps_table(reply));
    return exit_code::ok;
}

int cli_tell(const cli_arguments& a, const cli_environment& env) {
    json request = {{"command", a.command}};
    if (a.command == "kill") {
        const int number = signal_from(a.signal);
        if (number == 0)
            throw config_error(
                fmt::format("--signal {}: no signal of this system; expected e.g. KILL, TERM, ABRT or a number", a.signal));
        request["signal"] = number;
    }
    if (a.command == "inject") {
        const std::vector<std::string> known{"hang", "gpu-fault", "exit", "abort"};
        if (std::find(known.begin(), known.end(), a.fault) == known.end())
            throw config_error(fmt::format("--fault {}: no such fault; expected {}{}", a.fault, fmt::join(known, ", "), did_you_mean_clause(a.fault, known)));
        request["fault"] = a.fault;
    }
    const run::record run = choose_pipeline(a.pipeline, a.wait_s);
    if (a.stages.empty()) {  // `down` alone
        end_pipeline(run, a.timeout_s);
        env.out << fmt::format("pipeline \"{}\" has ended\n", run.name);
        return exit_code::ok;
    }
    int code = exit_code::ok;
    for (const std::string& stage : a.stages) {
        request["stage"] = stage;
        const json reply = ask_pipeline(run, request, a.wait_s);
        if (is_well(reply)) {
            env.out << printable(message_of(reply, fmt::format("{} {}", a.command, stage))) << "\n";
            continue;
        }
        env.err << "error: " << message_of(reply, fmt::format("pipeline \"{}\" refused, without a reason", run.name)) << "\n";
        if (code == exit_code::ok) code = code_of(reply);
    }
    return code;
}

}  // namespace carousel::supervisor
