// `carousel clean`.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "os/table.hpp"
#include "runs/clean.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

int clean(bool dry_run, bool as_json, const cli_environment& env) {
    int code = exit_code::ok;
    json items = json::array();
    std::string text;
    for (const leftover& l : find_leftovers(env.places)) {
        const std::string trouble = dry_run ? l.kept : remove_leftover(l);
        const bool removed = !dry_run && trouble.empty();
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
        text += fmt::format("{} {} {} ({}): {}{}\n", verb, l.kind, printable(l.path), human_bytes(l.bytes),
                            l.why, trouble.empty() ? "" : "; " + trouble);
    }
    if (as_json)
        env.out << json{{"ok", code == exit_code::ok}, {"leftovers", items}}.dump(
                       2, ' ', false, json::error_handler_t::replace)
                << "\n";
    else
        env.out << (text.empty() ? "nothing to clean\n" : text);
    return code;
}

command_action add_clean_command(const command_parts& p) {
    const auto dry_run = std::make_shared<bool>(false);
    p.app.add_flag("--dry-run", *dry_run, "Only say what would be removed");
    p.app.add_flag("--json", p.common.json, "Print JSON");
    return
        [dry_run](const common_words& c, const cli_environment& env) { return clean(*dry_run, c.json, env); };
}

}  // namespace

const command clean_command{
    "clean", "Remove what dead runs and spaces left (shared memory, sockets); living ones are never touched",
    add_clean_command};

}  // namespace carousel::supervisor
