// `carousel reload` and `carousel upgrade`. This process queries the stages' programs, which may take long.
// The supervisor, which never blocks, then only compares the replies and applies the plan
// (supervisor/engine/reload.hpp).

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>
#include <ostream>

#include "cli/complete.hpp"
#include "cli/options.hpp"
#include "control/client.hpp"
#include "core/clock.hpp"
#include "core/described.hpp"
#include "core/executable_path.hpp"
#include "core/user_input.hpp"
#include "os/table.hpp"
#include "runs/client.hpp"
#include "shm/segment.hpp"
#include "spec/describe.hpp"
#include "spec/programs.hpp"
#include "supervisor/plan/compatibility.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;
constexpr f64 answer_timeout_s = 600;  // a stage may load for long, and the reply waits for every stage
constexpr u64 successor_patience_ns = 30 * ns_per_s;
constexpr u64 drain_report_ns = 10 * ns_per_s;
constexpr u32 successor_poll_us = 20'000;

struct reload_arguments : client_arguments {
    std::string file;
};

struct upgrade_arguments : client_arguments {
    std::string prefix;
    bool drain = false;
};

/// Returns the source of the run's present plan.
plan_source source_of_run(const run::record& r) {
    auto known = read_identity(r.folder);
    if (!known) throw shm_error(fmt::format("{}/pipeline.json can't be read", r.folder));
    if (known->source.file.empty())
        throw config_error(fmt::format(
            "{} runs on several hosts, or was started by an older version: end it and start it again",
            r.name));
    return std::move(known->source);
}

/// Queries the stages' programs in the environment and the working directory of the run's supervisor.
run::reload_request request_for(const run::record& r, const plan_source& next) {
    run::reload_request out;
    out.text = next.text;
    out.programs = next.programs;
    const environment_override environment(r.supervisor);
    const pipeline p = pipeline_from(next, next.file);
    (void)describe_stages(p, 10'000, &out.replies);
    return out;
}

/// Sends the request and waits until it is done. If the supervisor dies during the wait, waits for the
/// supervisor that adopts the run; `r` then becomes the record of that supervisor.
json ask_until_done(run::record& r, const run::reload_request& request, f64 wait_s) {
    try {
        json reply = run::client(r).ask(request, wait_s, answer_timeout_s);
        require_well(reply, r.name);
        return reply;
    } catch (const shm_error&) {
        u64 gone_since_ns = 0;
        const u64 until = now_ns() + successor_patience_ns;
        while (now_ns() < until && still_running(r, gone_since_ns)) {
            ::usleep(successor_poll_us);
            try {
                json reply = run::client(r).ask(run::reload_request{}, 0, answer_timeout_s);
                require_well(reply, r.name);
                const plan_source has = source_of_run(r);
                if (has.text == request.text && has.programs == request.programs) return reply;
                throw config_error(
                    fmt::format("{}: its supervisor died before the reload began, and another one has "
                                "adopted the run with its old plan: try again",
                                r.name));
            } catch (const shm_error&) {  // no supervisor listens yet
            }
        }
        throw;
    }
}

std::string value_text(const json& value) {
    return value.is_null() ? "absent" : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

void print_answer(const json& reply, const cli_environment& env) {
    run::reload_answer a;
    read_known_fields(reply, a);
    for (const run::reloaded_key& k : a.keys)
        env.out << fmt::format("{:<10} {}{}: {} -> {}\n", k.live ? "live" : "restart",
                               k.stage.empty() ? "" : "stage " + k.stage + ": ", k.key, value_text(k.from),
                               value_text(k.to));
    for (const run::restarted_stage& s : a.restarted) {
        const std::string pids = s.old_pid == 0 ? fmt::format("has no process ({})", s.state)
                                 : s.ready      ? fmt::format("pid {} -> {}", s.old_pid, s.pid)
                                                : fmt::format("pid {} -> not ready ({})", s.old_pid, s.state);
        env.out << fmt::format("{:<10} stage {}: {}\n", "restarted", s.stage, pids);
    }
    for (const std::string& stage : a.pending)
        env.out << fmt::format("{:<10} stage {}: keeps its process\n", "pending", stage);
    env.out << (a.message.empty() ? "nothing is being reloaded" : printable(a.message)) << "\n";
}

int exit_code_for(const json& reply) {
    run::reload_answer a;
    read_known_fields(reply, a);
    for (const run::restarted_stage& s : a.restarted)
        if (!s.ready) return exit_code::stage_failed;
    return a.pending.empty() ? exit_code::ok : exit_code::stage_failed;
}

int reload(const reload_arguments& a, bool as_json, const cli_environment& env) {
    run::record r = choose_pipeline(a.pipeline, a.wait_s);
    plan_source next = source_of_run(r);
    const std::string file = a.file.empty() ? next.file : a.file;
    if (absolute_path(file).lexically_normal().string() != next.file)
        throw config_error(
            fmt::format("{} was started with {}, not with {}: change that file, since a supervisor that "
                        "adopts the run reads it",
                        r.name, next.file, file));
    next.text = read_pipeline_text(next.file);
    const json reply = ask_until_done(r, request_for(r, next), a.wait_s);
    if (as_json)
        env.out << reply.dump(2, ' ', false, json::error_handler_t::replace) << "\n";
    else
        print_answer(reply, env);
    return exit_code_for(reply);
}

void require_same_layout(const run::record& r) try {
    (void)shm::segment::observe(r.run_id);
} catch (const shm_error& e) {
    throw config_error(
        fmt::format("the stages of {} can't be replaced one by one: {}. `carousel upgrade -p {} --drain` "
                    "delivers the frames in flight, and continues with the new version at the next frame",
                    r.name, e.what(), r.name));
}

bool runs_program(i32 pid, const std::string& program) {
    std::error_code failed;
    return fs::read_symlink(fmt::format("/proc/{}/exe", pid), failed) == program && !failed;
}

bool answers(const run::record& r) {
    return run::read_verdict(run::client(r).ask(run::ps_request{}, 0, 5)).ok;
}

/// Waits until the supervisor of the run in `r` executes that program, and returns the run's new record.
run::record wait_for_program(const run::record& r, const std::string& program) {
    for (const u64 until = now_ns() + successor_patience_ns; now_ns() < until; ::usleep(successor_poll_us)) {
        const auto now = run::read_record(r.folder);
        try {
            if (!now || !answers(*now)) continue;
        } catch (const shm_error&) {  // no supervisor listens yet
            continue;
        }
        if (runs_program(now->supervisor.pid, program)) return *now;
        if (now->supervisor != r.supervisor)
            throw shm_error(fmt::format(
                "{}: its supervisor died while {} replaced it, and another program has adopted the run (pid "
                "{}): try again",
                r.name, program, now->supervisor.pid));
    }
    throw shm_error(fmt::format("{}: its supervisor was not replaced within {} s: see `carousel logs -p {}`",
                                r.name, successor_patience_ns / ns_per_s, r.name));
}

/// Returns the stages that are not done, with their states: "shade: backoff, show: running".
std::string unfinished_stages(const run::record& r) try {
    const json reply = run::client(r).ask(run::ps_request{}, 0, 5);
    std::vector<std::string> out;
    for (const json& row : reply.value("stages", json::array()))
        if (const std::string state = row.value("state", ""); state != "done" && state != "standby")
            out.push_back(fmt::format("{}: {}", row.value("name", ""), state));
    return printable(fmt::format("{}", fmt::join(out, ", ")));
} catch (const shm_error&) {
    return "its supervisor does not answer";
}

/// Waits for the end of the run, however long that takes, because a stage that is down holds the frames in
/// flight until it runs again. Reports after 1 s, and then every 10 s, what the run waits for. Returns the
/// record of the next run, which continues the run.
run::record wait_for_next_run(const run::record& r, std::ostream& progress) {
    run::record last = r;
    u64 report_ns = now_ns() + ns_per_s;
    for (u64 gone_since_ns = 0; still_running(last, gone_since_ns); ::usleep(successor_poll_us)) {
        if (const auto found = run::read_record(r.folder); found && found->run_id != r.run_id) return *found;
        if (now_ns() < report_ns) continue;
        report_ns = now_ns() + drain_report_ns;
        progress << fmt::format("{} still delivers its frames in flight ({})\n", r.name,
                                unfinished_stages(last))
                 << std::flush;
    }
    throw config_error(fmt::format("{} has ended, and was not continued: see its last lines", r.name));
}

int drain_and_continue(const run::record& r, const std::string& program, bool as_json,
                       const cli_environment& env) {
    const json reply = run::client(r).ask(run::continue_request{program}, 0);
    require_well(reply, r.name);
    const run::record now = wait_for_program(wait_for_next_run(r, env.err), program);
    const std::string text =
        fmt::format("{} continues with {} (supervisor: pid {})", r.name, program, now.supervisor.pid);
    env.out << (as_json ? run::to_json(run::carried_out(text)).dump(2) : text) << "\n";
    return exit_code::ok;
}

int upgrade(const upgrade_arguments& a, bool as_json, const cli_environment& env) {
    run::record r = choose_pipeline(a.pipeline, a.wait_s);
    plan_source next = source_of_run(r);
    const std::string program = executable_path();
    next.programs = executable_folder();
    if (a.drain) {
        next.text = read_pipeline_text(next.file);
        (void)request_for(r, next);  // refuses a file with which the run can't continue
        return drain_and_continue(r, program, as_json, env);
    }
    require_same_layout(r);
    run::reload_request request = request_for(r, next);
    request.restart_all = true;
    request.successor = program;
    const json reply = ask_until_done(r, request, a.wait_s);
    const int code = exit_code_for(reply);
    // The adopting supervisor knows neither whether all stages were replaced, nor that it must itself be
    // replaced.
    if (reply.value("message", "").empty())
        throw shm_error(
            fmt::format("{}: its supervisor died during the upgrade, and another one (pid {}) has "
                        "adopted the run: try again",
                        r.name, r.supervisor.pid));
    if (code == exit_code::ok) r = wait_for_program(r, program);
    if (as_json)
        env.out << reply.dump(2, ' ', false, json::error_handler_t::replace) << "\n";
    else
        print_answer(reply, env);
    if (!as_json && code == exit_code::ok)
        env.out << fmt::format("supervisor pid {}: {}\n", r.supervisor.pid, program);
    return code;
}

/// The `carousel` of an installation or of a build folder.
std::string program_below(const std::string& prefix) {
    for (const char* name : {"bin/carousel", "carousel"})
        if (const fs::path path = absolute_path(prefix) / name; ::access(path.c_str(), X_OK) == 0)
            return fs::canonical(path).string();
    throw config_error(
        fmt::format("--prefix {}: this folder contains neither bin/carousel nor carousel", prefix));
}

command_action add_reload_command(const command_parts& p) {
    const auto a = std::make_shared<reload_arguments>();
    p.offers[p.app.add_option("FILE", a->file,
                              "The changed pipeline file [the file that the run was started with]")] =
        offer_files({".toml"});
    add_client_options(p, *a);
    add_json(p);
    p.app.footer(
        "\n"
        "Changes of keys that only the supervisor reads apply at once; stages whose own keys have changed "
        "are\n"
        "restarted, one after another. A file with a change that needs a new run is refused as a whole.\n"
        "Exit codes: 0 applied; 1 a restarted stage did not become ready; 2 refused.\n"
        "\n"
        "Example:\n"
        "  carousel reload pipelines/demo.toml");
    return [a](const common_words& c, const cli_environment& env) {
        read_wait(*a);
        return reload(*a, c.json, env);
    };
}

command_action add_upgrade_command(const command_parts& p) {
    const auto a = std::make_shared<upgrade_arguments>();
    add_client_options(p, *a);
    p.app
        .add_option("--prefix", a->prefix,
                    "Installation or build folder of the new version [that of this program]")
        ->type_name("DIR");
    p.app.add_flag("--drain", a->drain,
                   "Deliver the frames in flight, and continue as a new run at the next frame; this also "
                   "works with another layout version or a changed file");
    add_json(p);
    p.app.footer(
        "\n"
        "Restarts all stages, one after another, with the programs of the new version, and then replaces "
        "the\n"
        "supervisor, which keeps its pid.\n"
        "\n"
        "Examples:\n"
        "  carousel upgrade\n"
        "  carousel upgrade -p demo --prefix /opt/carousel-0.3");
    return [a](const common_words& c, const cli_environment& env) {
        read_wait(*a);
        if (a->prefix.empty()) return upgrade(*a, c.json, env);
        const std::string program = program_below(a->prefix);
        if (program == executable_path()) return upgrade(*a, c.json, env);
        std::vector<std::string> words{program, "upgrade"};  // the new version compares itself with the run
        if (!a->pipeline.empty()) words.insert(words.end(), {"-p", a->pipeline});
        if (!a->wait.empty()) words.insert(words.end(), {"--wait", a->wait});
        if (a->drain) words.emplace_back("--drain");
        if (c.json) words.emplace_back("--json");
        exec_program(std::move(words), env.out);
    };
}

}  // namespace

extern const command reload_command{"reload", "Apply a changed pipeline file to a running pipeline",
                                    add_reload_command};

extern const command upgrade_command{
    "upgrade", "Replace the programs of a running pipeline by another version; no frame is lost",
    add_upgrade_command};

}  // namespace carousel::supervisor
