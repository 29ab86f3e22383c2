// `carousel kill`, `stop`, `cont`, `restart` and `inject`: the commands that act on one stage.

#include <fmt/format.h>

#include "cli/complete.hpp"
#include "cli/options.hpp"
#include "core/user_input.hpp"
#include "os/subprocess.hpp"
#include "shm/injected_fault.hpp"
#include "supervisor/plan/compatibility.hpp"

namespace carousel::supervisor {
namespace {

// `carousel kill`: sends a signal to stages.

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

// `carousel inject`: makes a stage fail by itself (shm/injected_fault.hpp lists the faults).

struct inject_arguments : stage_request_arguments {
    std::string fault = shm::injected_faults.front().name;
};

std::vector<std::string> known_faults() {
    std::vector<std::string> names;
    for (const shm::injected_fault_row& row : shm::injected_faults) names.emplace_back(row.name);
    return names;
}

/// Example: "hang (found at frame_timeout_ms) | gpu-fault | exit | abort [hang]"
std::string option_text(const std::string& otherwise) {
    std::string text;
    for (const shm::injected_fault_row& row : shm::injected_faults) {
        text += fmt::format("{}{}", text.empty() ? "" : " | ", row.name);
        if (*row.remark != 0) text += fmt::format(" ({})", row.remark);
    }
    return fmt::format("{} [{}]", text, otherwise);
}

int inject(const inject_arguments& a, const cli_environment& env) {
    const std::vector<std::string> known = known_faults();
    if (shm::fault_named(a.fault) == shm::injected_fault::nothing)
        throw config_error(fmt::format("--fault {}: unknown fault; expected {}{}", a.fault,
                                       shm::fault_names(", "), did_you_mean_clause(a.fault, known)));
    return send_to_stages(a, run::inject_request{"", shm::fault_named(a.fault)}, env);
}

command_action add_inject_command(const command_parts& p) {
    const auto a = std::make_shared<inject_arguments>();
    add_request_options(p, *a);
    p.offers[p.app.add_option("-f,--fault", a->fault, option_text(a->fault))->type_name("FAULT")] =
        offer(known_faults());
    p.app.description(fmt::format("{}: {}", p.app.get_description(), shm::fault_names(" or ")));
    p.app.footer("\nExample:\n  carousel inject fragment --fault gpu-fault");
    return [a](const common_words&, const cli_environment& env) {
        read_wait(*a);
        return inject(*a, env);
    };
}

}  // namespace

extern const command kill_command{
    "kill", "Send stages a signal [KILL]; they are restarted according to their restart policy",
    add_kill_command};

// `carousel stop`.

extern const command stop_command{
    "stop", "Pause stages (SIGSTOP, no deadline): the pipeline waits until `cont`", add_plain};

// `carousel cont`.

extern const command cont_command{"cont", "Continue paused stages", add_plain};

// `carousel restart`.

extern const command restart_command{
    "restart", "Restart stages (a rebuilt program takes over); no frame is lost",
    [](const command_parts& p) { return add_plain(p, require_able_successor); }};

extern const command inject_command{"inject", "Inject a fault into stages, at their next frame",
                                    add_inject_command};

}  // namespace carousel::supervisor
