#include "cli/clients.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/completers.hpp"
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

void add_told_options(const command_parts& p, told_arguments& a, bool stage_required) {
    add_client_options(p, a);
    CLI::Option* o =
        p.app.add_option("STAGE", a.stages, "Stages: fragment, or fragment.1 for one of several instances");
    p.offers[o->required(stage_required)] = running_stages;
}

int tell_stages(const told_arguments& a, json request, const cli_environment& env) {
    const run::record run = choose_pipeline(a.pipeline, a.wait_s);
    const std::string command = request.at("command");
    int code = exit_code::ok;
    for (const std::string& stage : a.stages) {
        request["stage"] = stage;
        const json reply = ask_pipeline(run, request, a.wait_s);
        if (is_well(reply)) {
            env.out << printable(message_of(reply, fmt::format("{} {}", command, stage))) << "\n";
            continue;
        }
        env.err << "error: " << message_of(reply, fmt::format("pipeline \"{}\" refused, without a reason", run.name)) << "\n";
        if (code == exit_code::ok) code = code_of(reply);
    }
    return code;
}

command_action add_plain(const command_parts& p) {
    const std::string name = p.app.get_name();
    const auto a = std::make_shared<told_arguments>();
    add_told_options(p, *a);
    p.app.footer(fmt::format("\nExample:\n  carousel {} fragment", name));
    return [a, name](const common_words&, const cli_environment& env) {
        read_wait(*a);
        return tell_stages(*a, {{"command", name}}, env);
    };
}

}  // namespace carousel::supervisor
