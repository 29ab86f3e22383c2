// `carousel chaos`: lets a user verify that faults of one stage harm neither frames nor other stages.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "chaos/run.hpp"
#include "cli/complete.hpp"
#include "cli/options.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "run/directory.hpp"
#include "supervisor/engine/report.hpp"
#include "supervisor/plan/hosts_plan.hpp"

namespace carousel::supervisor {
namespace {

constexpr const char* footer = R"(
Examples:
  carousel chaos pipelines/demo.toml --duration 60
  carousel chaos pipelines/demo.toml --device cuda:0 --count 500 --rate 5 --report chaos.json
  carousel chaos pipelines/demo.toml --faults kill,supervisor --seed 7 --log faults.jsonl

Faults: kill, term, stop: signals; all: SIGKILL to every stage at once; {}: injected into a stage in the middle
of a frame (`carousel inject --help`); supervisor: SIGKILL, and the same command takes over the run. Faults on other hosts are injected by their supervisors, and all hosts' accounts
count as one; start a host without a launcher by hand, once for the run and once for the fault-free run, when chaos prints it. The same seed gives the same faults in the same order; their times depend on the machine. Exit code 0: lost = repeated = torn = dead letters = 0, the image_hash
of a fault-free run (if no sink has hashes: the same number of frames), no unexpected death, every run taken over, no leftovers; 1: otherwise; 130: interrupted.)";

struct chaos_arguments {
    std::string file;
    pipeline_options keys;
    u64 seed = 0, count = 0;  ///< seed 0: the seed is taken from the clock
    std::string duration, faults, report, log;
    f64 rate = 2;
    bool no_compare = false;
};

int run_it(const chaos_arguments& a, const common_words& common, const cli_environment& env) {
    const f64 seconds = seconds_or("--duration", a.duration, 0);
    chaos::settings s;
    s.file = a.file;
    s.keys = a.keys;
    s.seed = a.seed != 0 ? a.seed : now_ns() / 1000 % 1'000'000 + 1;
    s.count = a.count;
    s.seconds = seconds > 0 ? seconds : s.count > 0 ? 0 : 30;
    s.rate = a.rate;
    s.log = a.log;
    s.compare = !a.no_compare;
    if (!a.faults.empty()) s.kinds = chaos::faults_from(a.faults);
    if (s.rate < 0) throw config_error("--rate: expected faults per second, 0 or more");
    // The pipeline file is read here, so that its errors are reported before anything is started.
    const pipeline p = read_pipeline(a.file, overrides_from(a.keys));
    s.spread = p.is_spread();
    s.token_folder = std::filesystem::path(token_path(p)).parent_path().string();
    s.has_displays = std::any_of(p.stages.begin(), p.stages.end(), [](const stage_spec& st) {
        return std::filesystem::path(st.run).filename() == "carousel-display";
    });
    check_report_path(a.report);
    env.err << fmt::format("chaos: seed {} (--seed {} repeats the plan)\n", s.seed, s.seed);
    const chaos::outcome o = chaos::run_chaos(s, env.err, env.err_is_terminal);
    nlohmann::json report = chaos::make_report(s, o);
    report["command_line"] = common.words;
    const std::string text = report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    env.out << (common.json ? text : chaos::report_text(report));
    if (!a.report.empty()) open_report(a.report).write(text);
    const bool passed = report["passed"];
    if (passed || (o.interrupted && o.faults.empty())) {
        std::error_code ignored;
        std::filesystem::remove_all(o.folder, ignored);
    } else {
        env.err << "logs and reports of the runs: " << o.folder << "\n";
    }
    if (o.interrupted) return 130;
    return passed ? exit_code::ok : exit_code::stage_failed;
}

command_action add_chaos_command(const command_parts& p) {
    const auto a = std::make_shared<chaos_arguments>();
    add_pipeline_file(p, a->file);
    add_device(p, a->keys);
    add_size(p, a->keys);
    add_mesh(p, a->keys, "Mesh that the sources use");
    add_fps(p, a->keys);
    add_set(p, a->keys);
    CLI::App& app = p.app;
    app.add_option("--seed", a->seed, "Seed of the plan (faults, stages, times) [from the clock]")
        ->type_name("N")
        ->check(CLI::PositiveNumber);
    app.add_option("--duration", a->duration, "End after S seconds [30, without --count]")->type_name("S");
    app.add_option("--count", a->count, "End after N faults")->type_name("N");
    app.add_option("--rate", a->rate, "Faults per second; 0: each fault as soon as all stages run again [2]")
        ->type_name("R");
    app.add_option("--faults", a->faults,
                   fmt::format("List of {} [all that are available]", fmt::join(chaos::fault_names(), ", ")))
        ->type_name("LIST");
    add_report(p, a->report, "Write the report (JSON) to FILE");
    CLI::Option* log =
        app.add_option("--log", a->log, "Write each action and its time to FILE, one line of JSON each");
    p.offers[log->type_name("FILE")->take_last()] = offer_files({""});
    app.add_flag("--no-compare", a->no_compare,
                 "Skip the fault-free run of the same number of frames and the comparison of image_hash");
    add_json(p, "Print the report as JSON");
    app.footer(fmt::format(footer, shm::fault_names(", ")));
    return [a](const common_words& c, const cli_environment& env) { return run_it(*a, c, env); };
}

}  // namespace

extern const command chaos_command{
    "chaos", "Run a pipeline under random faults and check that no frame is lost or changed",
    add_chaos_command, nullptr,
    "  carousel chaos pipelines/demo.toml                random faults, and a check of all frames\n"};

}  // namespace carousel::supervisor
