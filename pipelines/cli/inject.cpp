// `carousel inject`: makes a stage fail by itself (shm/injected_fault.hpp lists the faults).

#include <fmt/format.h>

#include "cli/clients.hpp"
#include "cli/completers.hpp"
#include "core/user_input.hpp"
#include "shm/injected_fault.hpp"

namespace carousel::supervisor {
namespace {

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

extern const command inject_command{"inject", "Inject a fault into stages, at their next frame",
                                    add_inject_command};

}  // namespace carousel::supervisor
