// `carousel clean`.

#include <fmt/format.h>

#include <filesystem>

#include "cli/command.hpp"
#include "core/json.hpp"
#include "os/table.hpp"
#include "run/liveness.hpp"
#include "runs/clean.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

/// Lists the data that was kept for runs that lost their supervisor; this data counts as leftovers.
std::vector<leftover> lost_run_leftovers() {
    std::vector<leftover> all;
    for (const run::lost_run& r : run::lost_runs())
        all.push_back({"lost run", r.folder, r.name, r.run_id, 0,
                       "it lost its supervisor, and --lost removes such runs", ""});
    return all;
}

std::string remove_kept(const leftover& l) {
    std::error_code failed;
    std::filesystem::remove_all(l.path, failed);
    return failed ? failed.message() : "";
}

int clean(bool dry_run, bool lost, bool as_json, const cli_environment& env) {
    int code = exit_code::ok;
    json items = json::array();
    std::string text;
    std::vector<leftover> all = find_leftovers(env.places);
    if (lost)
        for (leftover& l : lost_run_leftovers()) all.push_back(std::move(l));
    for (const leftover& l : all) {
        const std::string error_text = dry_run                ? l.kept
                                       : l.kind == "lost run" ? remove_kept(l)
                                                              : remove_leftover(l);
        const bool removed = !dry_run && error_text.empty();
        if (!error_text.empty() && l.kept.empty()) code = exit_code::shared_memory;
        items.push_back({{"kind", l.kind},
                         {"path", l.path},
                         {"pipeline", l.name},
                         {"run_id", l.run_id},
                         {"bytes", l.bytes},
                         {"why", l.why},
                         {"removed", removed},
                         {"kept", error_text}});
        const char* verb = !error_text.empty() ? "kept" : removed ? "removed" : "would remove";
        text += fmt::format("{} {} {} ({}): {}{}\n", verb, l.kind, printable(l.path), human_bytes(l.bytes),
                            l.why, error_text.empty() ? "" : "; " + error_text);
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
    const auto dry_run = std::make_shared<bool>(false), lost = std::make_shared<bool>(false);
    p.app.add_flag("--dry-run", *dry_run, "Only print what would be removed");
    p.app.add_flag("--lost", *lost,
                   "Also remove the data of lost runs: log lines, crash records and delivery account "
                   "(`carousel ps --all` lists them)");
    p.app.add_flag("--json", p.common.json, "Print JSON");
    return [dry_run, lost](const common_words& c, const cli_environment& env) {
        return clean(*dry_run, *lost, c.json, env);
    };
}

}  // namespace

extern const command clean_command{
    "clean",
    "Remove leftovers of dead runs and spaces (shared memory, sockets); running ones are never touched",
    add_clean_command};

}  // namespace carousel::supervisor
