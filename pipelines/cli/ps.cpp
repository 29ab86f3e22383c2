// `carousel ps`.

#include <nlohmann/json.hpp>

#include "cli/clients.hpp"
#include "run/client.hpp"
#include "runs/client.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

int show(const client_arguments& a, bool as_json, const cli_environment& env) {
    const run::record run = choose_pipeline(a.pipeline, a.wait_s);
    const json reply = run::client(run).ask(run::ps_request{}, a.wait_s);
    require_well(reply, run.name);
    env.out << (as_json ? reply.dump(2, ' ', false, json::error_handler_t::replace) + "\n"
                        : ps_table(run::read_ps(reply)));
    return exit_code::ok;
}

command_action add(const command_parts& p) {
    const auto a = std::make_shared<client_arguments>();
    add_client_options(p, *a);
    add_json(p);
    p.app.footer("\nExamples:\n  carousel ps\n  carousel ps -p demo --json");
    return [a](const common_words& c, const cli_environment& env) {
        read_wait(*a);
        return show(*a, c.json, env);
    };
}

}  // namespace

const command ps_command{"ps", "Show the stages of a running pipeline", add};

}  // namespace carousel::supervisor
