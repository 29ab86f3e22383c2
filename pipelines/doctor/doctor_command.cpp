// `carousel doctor`.

#include "cli/command.hpp"
#include "core/json.hpp"
#include "doctor/doctor.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

int report(bool as_json, bool no_color, const cli_environment& env) {
    const std::vector<finding> all = examine();
    env.out << (as_json ? doctor_json(all).dump(2, ' ', false, json::error_handler_t::replace) + "\n"
                        : doctor_text(all, wants_color(env.out_is_terminal, no_color)));
    return any_failed(all) ? exit_code::no_device : exit_code::ok;
}

command_action add_doctor_command(const command_parts& p) {
    const auto no_color = std::make_shared<bool>(false);
    p.app.add_flag("--json", p.common.json, "Print JSON");
    p.app.add_flag("--no-color", *no_color, "No ANSI colours");
    p.app.footer("\nExit code 3 when Carousel can't run here at all.");
    return [no_color](const common_words& c, const cli_environment& env) {
        return report(c.json, *no_color, env);
    };
}

}  // namespace

extern const command doctor_command{
    "doctor", "Check this machine: what Carousel needs, what was found, what to do", add_doctor_command,
    nullptr, "  carousel doctor                                   what this machine can do\n"};

}  // namespace carousel::supervisor
