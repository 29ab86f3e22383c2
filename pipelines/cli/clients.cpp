#include "cli/clients.hpp"

#include <fmt/format.h>

#include "cli/completers.hpp"
#include "control/client.hpp"
#include "control/request_message.hpp"
#include "core/json.hpp"
#include "os/table.hpp"
#include "runs/client.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

/// The refusal's code if it is a valid exit code, else 1.
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

void add_request_options(const command_parts& p, stage_request_arguments& a, bool stage_required) {
    add_client_options(p, a);
    CLI::Option* o =
        p.app.add_option("STAGE", a.stages, "Stages: fragment, or fragment.1 for one of several instances");
    p.offers[o->required(stage_required)] = running_stages;
}

int send_to_stages(const stage_request_arguments& a, const run::request& request, const cli_environment& env,
                   const stage_check& check) {
    const run::record run = choose_pipeline(a.pipeline, a.wait_s);
    const std::string command = run::command_of(request);
    int code = exit_code::ok;
    if (check)
        for (const std::string& stage : a.stages) check(run, stage);
    for (const std::string& stage : a.stages) {
        const run::verdict v =
            run::read_verdict(run::client(run).ask(run::of_stage(request, stage), a.wait_s));
        if (v.ok) {
            env.out << printable(v.message.value_or(fmt::format("{} {}", command, stage))) << "\n";
            continue;
        }
        env.err << "error: "
                << v.message.value_or(fmt::format("pipeline \"{}\" refused, without a reason", run.name))
                << "\n";
        if (code == exit_code::ok) code = code_of(v);
    }
    return code;
}

command_action add_plain(const command_parts& p) { return add_plain(p, {}); }

command_action add_plain(const command_parts& p, const stage_check& check) {
    const std::string name = p.app.get_name();
    const auto a = std::make_shared<stage_request_arguments>();
    add_request_options(p, *a);
    p.app.footer(fmt::format("\nExample:\n  carousel {} fragment", name));
    const run::seat_order order = enum_named<run::seat_order>(name).value();
    return [a, order, check](const common_words&, const cli_environment& env) {
        read_wait(*a);
        return send_to_stages(*a, run::seat_request{order, ""}, env, check);
    };
}

}  // namespace carousel::supervisor
