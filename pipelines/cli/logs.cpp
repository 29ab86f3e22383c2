// `carousel logs`: the log lines of a run. The run may be alive, may have ended with its logs kept, or may
// have lost its supervisor.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "cli/complete.hpp"
#include "cli/options.hpp"
#include "control/client.hpp"
#include "control/ps_message.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/user_input.hpp"
#include "os/console.hpp"
#include "os/log_pipe.hpp"
#include "os/table.hpp"
#include "run/liveness.hpp"
#include "runs/client.hpp"
#include "runs/log_reader.hpp"
#include "shm/runtime_folder.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
constexpr u32 repoll_us = 100'000;

constexpr const char* logs_footer = R"(
Examples:
  carousel logs -f                        follow all stages; ends with the run
  carousel logs -n 50 fragment vertex     the last 50 lines of two stages
  carousel logs --since 5m --timestamps -p demo
  carousel logs --level warning           warnings and errors

The supervisor's own lines are listed as `carousel`. The last 4 to 8 MiB of each process's lines are kept in the run's runtime directory, also after restarts.
They are deleted at the end of the run, unless it ran in the background (-d) or with --keep-logs: then they are kept until the next run of
that name, or `carousel clean`. For the newest ten runs that lost their supervisor, the lines are kept with the other data of the run
(`carousel ps --all` lists them): they are shown with --lost, or if no other run of that name exists. Exit codes: 0, also at the end of the run with -f; 2 no such run, or no run with lines; 130 Ctrl-C.)";

struct logs_arguments : client_arguments {
    std::vector<std::string> stages;
    bool follow = false, timestamps = false, no_color = false, lost = false;
    std::string lines, since, level;
};

struct place {
    std::string name;
    std::optional<run::record> run = {};     ///< while it is alive
    std::optional<run::lost_run> lost = {};  ///< it lost its supervisor
    [[nodiscard]] std::string logs() const;
};

std::string logs_of(const std::string& name) { return run::run_folder(name) + "/logs"; }
std::string place::logs() const { return lost ? lost->logs() : logs_of(name); }

std::optional<place> newest_lost(const std::string& name) {
    std::vector<run::lost_run> all = run::lost_runs(name);
    if (all.empty()) return std::nullopt;
    place p{all.front().name};
    p.lost = std::move(all.front());
    return p;
}

/// Returns the names of runs that have ended and whose logs still exist.
std::vector<std::string> ended_with_logs() {
    std::vector<std::string> names;
    std::error_code failed;
    for (fs::directory_iterator at(run::runs_folder(), failed), end; !failed && at != end;
         at.increment(failed)) {
        const std::string name = at->path().filename().string();
        if (!log_reader(logs_of(name)).labels().empty()) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

/// A living run is preferred to a run that has ended. If the choice is ambiguous, the error is the same as
/// for a command that needs a living run.
place choose_place(const logs_arguments& a) {
    if (a.lost) {
        if (auto lost = newest_lost(a.pipeline)) return *lost;
        throw config_error(
            fmt::format("--lost: no run{} has lost its supervisor; `carousel ps --all` lists all runs",
                        a.pipeline.empty() ? "" : " of the name " + a.pipeline));
    }
    if (!a.pipeline.empty() && a.wait_s == 0 &&
        (!shm::is_folder_name(a.pipeline) || !log_reader(logs_of(a.pipeline)).labels().empty())) {
        for (run::record& r : run::living_runs())
            if (r.name == a.pipeline) return {r.name, std::move(r)};
        if (shm::is_folder_name(a.pipeline)) return {a.pipeline};
    }
    if (a.pipeline.empty() && a.wait_s == 0 && run::living_runs().empty()) {
        const std::vector<std::string> ended = ended_with_logs();
        if (ended.size() == 1) return {ended.front()};
        if (ended.size() > 1)
            throw config_error(
                fmt::format("no pipeline is running; logs exist for these, choose one with -p NAME: {}",
                            fmt::join(ended, ", ")));
    }
    try {
        run::record r = choose_pipeline(a.pipeline, a.wait_s);
        return {r.name, std::move(r)};
    } catch (const config_error& e) {
        if (auto lost = newest_lost(a.pipeline)) return *lost;
        throw config_error(fmt::format(
            "{}. Logs are deleted at the end of a run, unless it ran in the background or with --keep-logs",
            e.what()));
    }
}

/// Returns the names by which a user may select a part of the run: "fragment", "fragment.1", "carousel". For
/// the label of an instance, the name of its stage is also returned.
std::set<std::string> known_names(const place& p) {
    std::set<std::string> known = {"carousel"};
    for (const std::string& label : log_reader(p.logs()).labels()) {
        known.insert(label);
        if (const auto dot = label.find('.'); dot != std::string::npos) known.insert(label.substr(0, dot));
    }
    if (!p.run) return known;
    try {
        const std::vector<std::string> names =
            names_for_commands(run::read_ps(run::client(*p.run).ask(run::ps_request{}, 0, 2)));
        known.insert(names.begin(), names.end());
    } catch (const std::exception&) {  // a run that is starting, ending or stopped does not reply; in this
                                       // case the log files suffice
    }
    return known;
}

void check_stages(const logs_arguments& a, const place& p) {
    if (a.stages.empty()) return;
    const std::set<std::string> known = known_names(p);
    const std::vector<std::string> names(known.begin(), known.end());
    for (const std::string& s : a.stages)
        if (known.count(s) == 0)
            throw config_error(fmt::format("the pipeline {} has no stage \"{}\"{}; there are {}{}", p.name, s,
                                           p.run ? "" : " with log lines", fmt::join(names, ", "),
                                           did_you_mean_clause(s, names)));
}

/// "": all lines.
log::level level_named(const std::string& name) {
    if (name.empty()) return log::level::debug;
    std::vector<std::string> known;
    for (const log::level each :
         {log::level::debug, log::level::info, log::level::warning, log::level::error}) {
        if (name == log::name_of(each)) return each;
        known.emplace_back(log::name_of(each));
    }
    throw config_error(fmt::format("--level {}: unknown level; expected one of {}{}", name,
                                   fmt::join(known, ", "), did_you_mean_clause(name, known)));
}

class printer {
public:
    printer(const logs_arguments& a, f64 since, bool as_json, const cli_environment& env)
        : arguments_(&a),
          env_(&env),
          json_(as_json),
          color_(wants_color(env.out_is_terminal, a.no_color)),
          since_(since),
          lowest_(level_named(a.level)) {}

    void widen(const std::vector<std::string>& labels) {
        for (const std::string& l : labels) width_ = std::max(width_, l.size());
    }
    /// Must be called once for each record, in order, because an indented line has the level of the line
    /// before it.
    [[nodiscard]] std::optional<log::level> wanted(const log_record& r) {
        const log::level level = levels_[r.stage].next(r.line);
        return level >= lowest_ && selected(r) ? std::optional(level) : std::nullopt;
    }
    void print(const log_record& r, log::level level) const {
        if (json_) {
            const json j{{"time", timestamp_text(r.time)},
                         {"stage", r.stage},
                         {"pid", r.pid},
                         {"level", log::name_of(level)},
                         {"line", r.line}};
            env_->out << j.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
            return;
        }
        const std::string text = arguments_->timestamps ? timestamp_text(r.time) + " " + r.line : r.line;
        env_->out << log_sink::prefixed(r.stage, width_, r.color, color_, text) << "\n";
    }

private:
    [[nodiscard]] bool selected(const log_record& r) const {
        if (r.time < since_) return false;
        if (arguments_->stages.empty()) return true;
        return std::any_of(arguments_->stages.begin(), arguments_->stages.end(), [&](const std::string& s) {
            return r.stage == s || r.stage.starts_with(s + ".");
        });
    }

    const logs_arguments* arguments_;
    const cli_environment* env_;
    bool json_, color_;
    std::size_t width_ = 8;
    f64 since_;
    log::level lowest_;
    std::map<std::string, line_levels> levels_;  ///< by stage
};

std::size_t lines_from(const std::string& text) {
    if (text.empty() || text == "all") return ~std::size_t{0};
    std::size_t n = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (failed != std::errc() || end != text.data() + text.size())
        throw config_error(fmt::format("-n {}: expected a number of lines, 0 or more, or all", text));
    return n;
}

void follow(place& p, log_reader& reader, printer& to, const cli_environment& env) {
    u64 gone_since_ns = 0;
    for (bool on = true; on && env.out.good();) {
        ::usleep(repoll_us);
        // The end of the run is checked before the files are read, so that lines written before the end are
        // still read below.
        on = still_running(*p.run, gone_since_ns);
        to.widen(reader.labels());
        for (const log_record& r : reader.take())
            if (const auto level = to.wanted(r)) to.print(r, *level);
        env.out.flush();
    }
    if (gone_since_ns != 0) env.err << fmt::format("the supervisor of \"{}\" has ended\n", p.name);
}

int show(const logs_arguments& a, bool as_json, const cli_environment& env) {
    const f64 now = static_cast<f64>(::time(nullptr));
    const f64 since = a.since.empty() ? 0 : since_from(a.since, now);
    const std::size_t last = lines_from(a.lines);
    place p = choose_place(a);
    check_stages(a, p);
    log_reader reader(p.logs());
    printer to(a, since, as_json, env);
    to.widen(reader.labels());
    std::vector<log_record> lines = reader.take();
    if (p.lost) {
        env.err << printable(run::describe(*p.lost)) << "\n";
        add_lines_alone(p.logs(), lines);
    }
    std::vector<std::pair<const log_record*, log::level>> wanted;
    for (const log_record& r : lines)
        if (const auto level = to.wanted(r)) wanted.emplace_back(&r, *level);
    for (std::size_t k = wanted.size() > last ? wanted.size() - last : 0; k < wanted.size(); ++k)
        to.print(*wanted[k].first, wanted[k].second);
    env.out.flush();
    if (a.follow && p.run) follow(p, reader, to, env);
    return exit_code::ok;
}

std::vector<std::string> speakers(const completion_request& request) {
    std::vector<std::string> names = running_stages(request);
    names.emplace_back("carousel");
    return names;
}

command_action add_logs_command(const command_parts& p) {
    const auto a = std::make_shared<logs_arguments>();
    add_client_options(p, *a);
    p.offers[p.app.add_option(
        "STAGE", a->stages, "Stages: fragment, fragment.1, or carousel for the supervisor [all]")] = speakers;
    p.app.add_flag("-f,--follow", a->follow, "Follow new lines until the run ends");
    p.app.add_option("-n,--lines", a->lines, "Only the last N lines; with -f, new lines follow them [all]")
        ->type_name("N")
        ->take_last();
    p.app
        .add_option("--since", a->since,
                    "Only lines since a time: 10s, 5m, 2h, 1d ago, or 2026-01-31T12:00:00Z")
        ->type_name("TIME")
        ->take_last();
    p.offers[p.app.add_option("--level", a->level, "Only lines of this level and above [debug]")
                 ->type_name("LEVEL")] = offer({"debug", "info", "warning", "error"});
    p.app.add_flag("-t,--timestamps", a->timestamps, "Print the time of each line (UTC)");
    p.app.add_flag("--lost", a->lost,
                   "The newest run that lost its supervisor, even if another run of that name exists");
    add_no_color(p, a->no_color);
    add_json(p, "Print JSON, one object per line");
    p.app.footer(logs_footer);
    return [a](const common_words& c, const cli_environment& env) {
        read_wait(*a);
        return show(*a, c.json, env);
    };
}

}  // namespace

extern const command logs_command{"logs", "Show the logs of stages and supervisor", add_logs_command};

}  // namespace carousel::supervisor
