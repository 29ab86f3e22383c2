// `carousel kill`: sends a signal to stages.

#include <fmt/format.h>

#include "cli/clients.hpp"
#include "cli/completers.hpp"
#include "os/subprocess.hpp"

namespace carousel::supervisor {
namespace {

struct kill_arguments : stage_request_arguments {
    std::string signal = "KILL";
};

int kill_stages(const kill_arguments& a, const cli_environment& env) {
    const int number = signal_from(a.signal);
    if (number == 0)
        throw config_error(
            fmt::format("--signal {}: unknown signal; expected e.g. KILL, TERM, ABRT or a number", a.signal));
    return send_to_stages(a, run::kill_request{"", number}, env);
}

command_action add_kill_command(const command_parts& p) {
    const auto a = std::make_shared<kill_arguments>();
    add_request_options(p, *a);
    CLI::Option* o =
        p.app.add_option("-s,--signal", a->signal, "Signal by name or number [KILL]")->type_name("SIGNAL");
    p.offers[o] = offer(
        {"KILL", "TERM", "INT", "ABRT", "SEGV", "STOP", "CONT", "HUP", "QUIT"});  // a selection of signals
    p.app.footer("\nExample:\n  carousel kill fragment --signal ABRT");
    return [a](const common_words&, const cli_environment& env) {
        read_wait(*a);
        return kill_stages(*a, env);
    };
}

}  // namespace

extern const command kill_command{
    "kill", "Send stages a signal [KILL]; they are restarted according to their restart policy",
    add_kill_command};

}  // namespace carousel::supervisor
