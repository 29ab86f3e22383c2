// `carousel doctor` and `carousel clean`.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/cli.hpp"
#include "doctor/doctor.hpp"
#include "os/table.hpp"
#include "runs/clean.hpp"

namespace carousel::supervisor {

using nlohmann::json;

int cli_doctor(const cli_arguments& a, const cli_environment& env) {
    const std::vector<finding> all = examine();
    env.out << (a.json ? doctor_json(all).dump(2, ' ', false, json::error_handler_t::replace) + "\n"
                       : doctor_text(all, wants_color(env.out_is_terminal, a.no_color)));
    return any_failed(all) ? exit_code::no_device : exit_code::ok;
}

int cli_clean(const cli_arguments& a, const cli_environment& env) {
    int code = exit_code::ok;
    json items = json::array();
    std::string text;
    for (const leftover& l : find_leftovers(env.places)) {
        const std::string trouble = a.dry_run ? l.kept : remove_leftover(l);
        const bool removed = !a.dry_run && trouble.empty();
        if (!trouble.empty() && l.kept.empty()) code = exit_code::shared_memory;
        items.push_back({{"kind", l.kind},
                         {"path", l.path},
                         {"pipeline", l.name},
                         {"run_id", l.run_id},
                         {"bytes", l.bytes},
                         {"why", l.why},
                         {"removed", removed},
                         {"kept", trouble}});
        const char* verb = !trouble.empty() ? "kept" : removed ? "removed" : "would remove";
        text += fmt::format("{} {} {} ({}): {}{}\n", verb, l.kind, printable(l.path), human_bytes(l.bytes), l.why,
                            trouble.empty() ? "" : "; " + trouble);
    }
    if (a.json)
        env.out << json{{"ok", code == exit_code::ok}, {"leftovers", items}}.dump(2, ' ', false, json::error_handler_t::replace)
                << "\n";
    else
        env.out << (text.empty() ? "nothing to clean\n" : text);
    return code;
}

}  // namespace carousel::supervisor
