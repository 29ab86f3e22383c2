// `carousel chaos`: a user's own proof that nothing which happens to one stage harms a frame or another stage.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "chaos/run.hpp"
#include "cli/cli.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "run/directory.hpp"
#include "supervisor/engine/report.hpp"

namespace carousel::supervisor {

int cli_chaos(const cli_arguments& a, const cli_environment& env) {
    chaos::settings s;
    s.file = a.file;
    s.keys = a.keys;
    s.seed = a.chaos_seed != 0 ? a.chaos_seed : now_ns() / 1000 % 1'000'000 + 1;
    s.count = a.chaos_count;
    s.seconds = a.seconds > 0 ? a.seconds : s.count > 0 ? 0 : 30;
    s.rate = a.chaos_rate;
    s.log = a.chaos_log;
    s.compare = !a.no_compare;
    if (!a.chaos_faults.empty()) s.kinds = chaos::faults_from(a.chaos_faults);
    if (s.rate < 0) throw config_error("--rate: expected faults a second, 0 or more");
    const pipeline p = read_pipeline(a.file, overrides_from(a.keys));  // said before anything is started
    s.has_displays = std::any_of(p.stages.begin(), p.stages.end(), [](const stage_spec& st) {
        return std::filesystem::path(st.run).filename() == "carousel-display";
    });
    check_report_path(a.report);
    env.err << fmt::format("chaos: seed {} (--seed {} repeats the plan)\n", s.seed, s.seed);
    const chaos::outcome o = chaos::run_chaos(s, env.err, env.err_is_terminal);
    nlohmann::json report = chaos::make_report(s, o);
    report["command_line"] = a.words;
    const std::string text = report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    env.out << (a.json ? text : chaos::report_text(report));
    if (!a.report.empty()) write_text_whole(a.report, text);
    const bool passed = report["passed"];
    if (passed) {
        std::error_code ignored;
        std::filesystem::remove_all(o.folder, ignored);
    } else {
        env.err << "the runs' lines and reports: " << o.folder << "\n";
    }
    if (o.interrupted) return 130;
    return passed ? exit_code::ok : exit_code::stage_failed;
}

}  // namespace carousel::supervisor
