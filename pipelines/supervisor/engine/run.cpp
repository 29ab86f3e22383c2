// run_pipeline(): from a checked pipeline to its report. Nothing is left over in any case, because the engine
// ends the processes and removes the shared memory, and the lock removes the folder.
#include "supervisor/engine/run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "os/console.hpp"
#include "os/descriptors.hpp"
#include "os/event_loop.hpp"
#include "os/notify_socket.hpp"
#include "run/directory.hpp"
#include "runs/run_lock.hpp"
#include "spec/programs.hpp"
#include "supervisor/engine/engine.hpp"
#include "supervisor/engine/reload.hpp"
#include "supervisor/engine/report.hpp"
#include "supervisor/engine/run_extension.hpp"
#include "supervisor/mps/mps_control.hpp"
#include "supervisor/plan/compatibility.hpp"
#include "supervisor/plan/depth_plan.hpp"
#include "supervisor/plan/device_fallback.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "supervisor/plan/standby_plan.hpp"

namespace carousel::supervisor {
namespace {

std::string new_run_id() {
    u64 bits = 0;
    if (::getrandom(&bits, sizeof bits, 0) != sizeof bits) bits = static_cast<u64>(::getpid());
    return fmt::format("{:012x}", bits & 0xFFFF'FFFF'FFFFU);
}

/// Prints the last lines of a run unchanged, and adds them to the log.
class closing {
public:
    closing(console& out, log_sink& journal) : out_(&out), journal_(&journal) {}
    void line(const std::string& text) {
        out_->line(text);
        journal_->note(::getpid(), text);
    }

private:
    console* out_;
    log_sink* journal_;
};

void log_root_cause(closing& out, const root_cause& f) {
    out.line(fmt::format("error: stage {} has failed: {}", f.label, f.what));
    for (const std::string& line : f.last_lines) out.line("    " + line);
}

std::string closing_line(const run_setup& s, const run_outcome& o, const std::string& account, u64 restarts) {
    return fmt::format("{}: {} frames in {:.{}f} s, {:.1f} frames/s; {}; {} restarts{}", s.name, o.end,
                       o.seconds, o.seconds < 1 ? 4 : 2, o.frames_per_second(), account, restarts,
                       o.complete ? "" : " (" + o.ending + ")");
}

void log_closing(closing& out, const run_setup& s, const run_outcome& o,
                 const std::vector<telemetry::stage_shares>& shares, bool reported) {
    if (!o.ended_by.empty()) out.line(stream_end_text(s.name, o.ended_by, o.end));
    if (const std::string early = o.early_text(); !early.empty())
        out.line(fmt::format("{}: {}{}", s.name, early,
                             o.exit_code == exit_code::ok ? "" : fmt::format("; exit code {}", o.exit_code)));
    if (const std::string limit = bottleneck_of(s, shares, nullptr).value("text", "");
        !limit.empty() && !s.quiet)
        out.line(fmt::format("{}: {} (over the whole run)", s.name, limit));
    if (!s.pictures.empty()) out.line("pictures: " + s.pictures);
    if (const std::string outputs = created_output_directory(s);
        !outputs.empty() && !s.pictures.starts_with(outputs))
        out.line("output directory: " + outputs);
    if (reported) out.line("report: " + s.report_path);
    const auto first = [&](auto&& is) { return std::find_if(s.stages.begin(), s.stages.end(), is); };
    auto victim =
        first([](const stage_setup& st) { return !st.is_sink() && !st.spec.input_indices.empty(); });
    if (victim == s.stages.end())  // no port is chosen, because the program at a port is not part of the run
        victim = first([](const stage_setup& st) { return !st.spec.is_port(); });
    if (o.complete && !s.quiet && victim != s.stages.end())
        out.line(fmt::format("tip: during a run, try in another terminal: {} kill {} -p {}", own_command(),
                             victim->spec.name, s.name));
}

/// Writes the report if it was requested. Returns the reason why the report or one of its ledgers cannot be
/// written; "": there is no failure.
std::string why_not_reported(const run_setup& s, const nlohmann::json& report,
                             const std::vector<sink_account>& sinks) {
    if (s.report_path.empty()) return "";
    try {
        write_report(s.report_path, report, s, sinks);
        return "";
    } catch (const output_error& e) {
        return e.what();
    }
}

int finish(engine& e, const run_setup& s, run_outcome o, const run_options& given_options,
           const run_extensions& extensions, console& out) {
    closing last(out, *e.seats().journal);
    // logged first, because the later steps can fail
    if (e.seats().failure) log_root_cause(last, *e.seats().failure);
    const std::vector<sink_account> sinks = read_ledgers(s, e.control(), o.end);
    const damage d = damage_of(sinks, e.control());
    const dead_letter_list dead_letters = dead_letters_of(sinks, e.seats().account);
    o.exit_code = exit_code_of(o, d, dead_letters, s.allow_dead_letters);
    if (o.exit_code == exit_code::ok && !o.repairs.state_lost_at.empty() && !s.allow_state_loss)
        o.exit_code = exit_code::state_lost;
    extensions.each([&](const run_extension& each) {
        if (o.exit_code == exit_code::ok) o.exit_code = each.exit_code();
    });
    // if one output fails, the account and the other outputs are still written
    std::vector<std::string> failed;
    for (const sink_account& a : sinks)
        if (!a.unreadable.empty()) failed.push_back(a.unreadable);
    if (o.exit_code == exit_code::ok && !failed.empty()) o.exit_code = exit_code::output;
    o.command_line = given_options.command_line;
    nlohmann::json report;
    if (!s.report_path.empty() || extensions.any([](run_extension& each) { return each.wants_report(); })) {
        report =
            make_report({&s, &e.control(), &e.seats().seats, &e.seats().account, &e.seats().recoveries.all(),
                         &sinks, o, e.problems_of_the_run(), e.shares_of_the_run(), e.parameters_of_the_run(),
                         e.seats().recoveries.dropped()});
        report["fallback"] = report_of(e.devices_of_the_run(), s, e.started_ns());
        extensions.each([&](const run_extension& each) { each.add_to_report(report); });
    }
    const std::string unreported = why_not_reported(s, report, sinks);
    if (!unreported.empty()) failed.push_back(unreported);
    if (o.exit_code == exit_code::ok && !failed.empty()) o.exit_code = exit_code::output;
    if (o.exit_code != exit_code::ok) out.set_threshold(log::level::info);  // with --quiet, too
    std::string account = damage_text(d, sinks);
    if (const std::string why = s.why_not_comparable(); !why.empty())
        account += "; hashes can't be compared: " + why;
    if (!o.repairs.state_lost_at.empty())
        account += fmt::format("; fresh states at frame {}", fmt::join(o.repairs.state_lost_at, ", "));
    if (const std::string moves = moves_text(e.devices_of_the_run()); !moves.empty()) account += "; " + moves;
    if (dead_letters.count > 0) account += "; " + dead_letters_text(dead_letters);
    const std::string line = closing_line(s, o, account, e.seats().account.restarts);
    last.line(line);
    extensions.each([&](run_extension& each) {
        for (const std::string& text : each.closing_lines()) last.line(text);
        each.report_outcome(o.exit_code, report, line);
    });
    log_closing(last, s, o, e.shares_of_the_run(), !s.report_path.empty() && unreported.empty());
    for (const std::string& why : failed) last.line("error: " + why);
    e.note_end(o.exit_code);
    // A run that has failed or was ended before its last frame leaves its checkpoints for --first checkpoint.
    constexpr std::array as_intended = {exit_code::ok, exit_code::frames_abandoned, exit_code::state_lost};
    const bool all_made = o.end_requested_by.empty() || o.end >= o.planned_end || !o.ended_by.empty();
    if (!all_made)
        e.keep_checkpoints();
    else if (std::find(as_intended.begin(), as_intended.end(), o.exit_code) != as_intended.end())
        e.remove_checkpoints();
    return o.exit_code;
}

/// Returns the run that was left by a dead supervisor of this name, or by the previous program of this
/// process; returns nothing if no stage of that run is alive.
std::optional<run::record> surviving_run(const run_lock& lock) {
    auto record = run::read_record(lock.folder());
    const auto is_recoverable = [&](const run::record& r) {
        return run::is_of_here(r) && (lock.was_kept() || !run::is_alive(r, true)) &&
               living_processes(r.run_id) > 0;
    };
    if (record && !is_recoverable(*record)) record.reset();
    return record;
}

/// Returns the pipeline with which a run is continued. If the file, or the programs next to this one, have
/// changed, the run continues with its own pipeline, because only a reload changes the pipeline of a run.
pipeline plan_to_adopt(const std::optional<stored_identity>& kept, const pipeline& wanted, console& out) {
    const plan_source here = source_of(wanted);
    if (!kept || here.file.empty() || kept->source.file != here.file ||
        kept->source.overrides != here.overrides ||
        (kept->source.text == here.text && kept->source.programs == here.programs))
        return wanted;
    if (kept->source.text != here.text)
        out.line(
            fmt::format("{} has changed since {} was started with it; the run continues unchanged until `{} "
                        "reload -p {}` applies the file",
                        wanted.file, wanted.name, own_command(), wanted.name));
    return pipeline_from(kept->source, wanted.file);
}

/// If this function throws, the stages are not affected: they wait for another supervisor with the same
/// pipeline, and exit by themselves if no such supervisor connects.
void restore_identity(const std::optional<stored_identity>& kept, const run::record& existing,
                      const nlohmann::json& wanted, const plan_source& source, run_setup& s) {
    const auto compare = [&] {
        return same_text(kept->source, source)
                   ? difference(common_keys(kept->identity, wanted), common_keys(wanted, kept->identity))
                   : difference(kept->identity, wanted);
    };
    if (const std::string what = kept ? compare() : "its plan can't be read any more"; !what.empty())
        throw config_error(fmt::format(
            "a pipeline \"{}\" is running without a supervisor (pid {} was killed; {} stages continue), but "
            "it was started with other settings: {}. Start it with the same file and settings to take it "
            "over, or with --fresh to end it and start a new run; otherwise it ends automatically",
            s.name, existing.supervisor.pid, living_stages(existing.run_id), what));
    restore_outputs(*kept, s);
    restore_depths(kept->depths, s);
}

/// If the machine lacks the GPU of stages that may run on the CPU instead, they begin there.
void begin_on_cpu(const pipeline& p, machine_offer& machine, fallback_state& devices, console& out) {
    devices.stages = stages_without_gpu(p, machine);
    if (devices.stages.empty()) return;
    devices.why = machine.why_none.empty() ? "the machine lacks the GPU" : machine.why_none;
    devices.since_ns = now_ns();
    ++devices.fallbacks;
    devices.last.push_back({devices.stages, "cpu", devices.why, devices.since_ns, 0, 0});
    machine = with_wanted_gpus(std::move(machine), p);
    out.line(fmt::format("{}: {} begin{} on the CPU", devices.why, fmt::join(devices.stages, ", "),
                         devices.stages.size() == 1 ? "s" : ""));
}

/// Returns the message that names the stages on which isolation = "mps" has no effect; "": there is no such
/// stage.
std::string no_domain_text(const pipeline& p, const run_setup& s) {
    std::string names;
    for (u32 k = 0; k < s.stages.size(); ++k)
        if (p.stages[k].isolation == isolation_kind::mps && !s.stages[k].mps)
            names += (names.empty() ? "" : ", ") + s.stages[k].spec.name;
    return names.empty()
               ? ""
               : fmt::format("isolation = \"mps\" has no effect on stages that run on the CPU: {}", names);
}

/// Returns the run that a killed supervisor of that name has left. Its control block may be gone: a
/// supervisor that rebuilds it removes the old one first. To be called before waiting for the lock.
std::optional<run::record> unfinished_run(const std::string& name) {
    auto record = run::read_record(run::run_folder(name));
    if (record && is_alive(*record)) record.reset();
    return record;
}

/// Logs that a fresh run starts instead of adopting the existing one.
void log_fresh_start(const run::record& existing, console& out) {
    const bool there = shm::segment::exists(existing.run_id);
    out.line(fmt::format(
        "the supervisor of the last run of {0} (pid {1}) was killed, and {2}. A new run starts. Data of the "
        "lost run: `{3} logs --lost -p {0}`, `{3} ps --all`",
        existing.name, existing.supervisor.pid,
        there ? "none of its stages is running, so its ring memory is lost"
              : "its control block is gone: its stages have just exited, because no supervisor took it over "
                "within supervisor_grace_s, or it was being rebuilt",
        own_command()));
}

// Variables of the environment for the supervisor alone: the service manager's, and the descriptor of the
// lock that the previous program of this process kept.
using variables = std::map<std::string, std::string>;
constexpr const char* kept_lock_variable = "CAROUSEL_KEPT_LOCK";

/// Removes the variables from the environment, so that no stage inherits them.
variables take_own_variables() {
    variables own;
    const auto take = [&](const char* name) {
        if (const char* value = std::getenv(name); value != nullptr) own[name] = value;
        ::unsetenv(name);
    };
    for (const char* name : notify_variables) take(name);
    take(kept_lock_variable);
    return own;
}

/// Replaces the program of this process. For the run this is like the death of its supervisor, because every
/// descriptor is closed. Only the run's lock stays held, if `own` names its descriptor. Throws shm_error.
[[noreturn]] void become(const std::string& program, const std::vector<std::string>& command_line,
                         const variables& own) {
    std::vector<std::string> words{program}, environment;
    words.insert(words.end(), command_line.begin(), command_line.end());
    for (char** each = environ; *each != nullptr; ++each) environment.emplace_back(*each);
    for (const auto& [name, value] : own) environment.push_back(name + "=" + value);
    const auto pointers = [](std::vector<std::string>& texts) {
        std::vector<char*> all;
        for (std::string& text : texts) all.push_back(text.data());
        all.push_back(nullptr);
        return all;
    };
    ::execve(program.c_str(), pointers(words).data(), pointers(environment).data());
    throw shm_error(fmt::format("starting {}: {}", program, errno_text(errno)));
}

/// How a run continues after its end: see reload.hpp.
struct continuation {
    std::string program;  ///< "": it does not
    u64 first = 0;
};

int run_once(const pipeline& given, const run_options& given_options, variables& own, continuation& next) {
    pipeline p = given;
    run_options o = given_options;
    const run_signals_blocked signals;
    arm_crash_points("supervisor");
    // No process of this run may be in an MPS domain other than the run's own domain: neither in the
    // machine's default domain, nor in a domain that the user's environment names. With a folder in which no
    // daemon listens, CUDA creates a private context for the process.
    ::setenv("CUDA_MPS_PIPE_DIRECTORY", no_mps_folder, 1);
    ::unsetenv("CUDA_MPS_LOG_DIRECTORY");
    raise_file_limit();
    (void)open_null(O_RDONLY);  // opens /dev/null, which every stage gets as its stdin
    const std::optional<run::record> before = unfinished_run(p.name);
    const auto kept = own.extract(kept_lock_variable);
    run_lock lock(p.name, o.wait_s, kept ? std::atoi(kept.mapped().c_str()) : -1);
    console out(STDERR_FILENO, o.color, understands_escapes(STDERR_FILENO));
    if (is_journal(STDERR_FILENO)) out.use(journal(journal_socket), p.name);
    if (o.quiet) out.set_threshold(log::level::warning);
    // From here on, the stages of a run that is taken over wait for this process, however long the remaining
    // steps take.
    const std::optional<run::record> existing =
        o.fresh && !lock.was_kept() ? std::nullopt : surviving_run(lock);
    lock.leave_folder(existing || before);
    const std::optional<stored_identity> stored = existing ? read_identity(lock.folder()) : std::nullopt;
    if (existing) p = plan_to_adopt(stored, given, out);
    if (o.stages.empty()) o.stages = describe_stages(p);
    lock.leave_folder(existing.has_value());
    if (!existing) {
        if (before && !o.fresh) log_fresh_start(*before, out);
        lock.clear_leftovers();
    }
    const auto reload = std::make_shared<reload_extension>();
    o.extensions.push_back(reload);
    run_extensions extensions(o.extensions);
    extensions.each([&](run_extension& each) { each.prepare(p, out); });
    if (o.keep_logs) lock.keep_logs();
    check_report_path(o.report_file);
    fallback_state devices = existing ? saved_fallback(lock.folder()) : fallback_state();
    // The GPU of a run that is taken over may be gone; its plan is still the one that it was started with.
    machine_offer machine = devices.probe.is_null() ? probe_for(p) : read_probe(devices.probe.dump());
    if (!existing) begin_on_cpu(p, machine, devices, out);
    run_setup s = setup_from(p, o, machine);
    const nlohmann::json identity = identity_of(s);
    if (!devices.stages.empty()) s = setup_from(p, o, machine, devices.stages);
    if (!existing) require_room(s, free_memory_of(machine));
    s.directory = lock.folder();
    if (existing) {
        restore_identity(stored, *existing, identity, source_of(p), s);
        if (!devices.depths.is_null()) restore_depths(devices.depths, s);
        // The stored identity gets the keys of this version, because reload and later adopters compare these
        // keys.
        if (stored->identity != identity) write_identity(lock.folder(), identity, s, source_of(p));
    } else {
        prepare_outputs(s, now_stamp());
    }
    make_log_folder(s.directory);
    const std::string run_id = existing ? existing->run_id : new_run_id();
    // The hosts agree now, because nothing has been allocated yet and no stage waits for frames.
    if (!existing) {
        try {
            extensions.each([&](run_extension& each) { each.agree(out, run_id); });
        } catch (const interrupted_early& early) {
            out.line(fmt::format("{}: interrupted before it started", s.name));
            return 128 + early.signal;
        }
    }
    run::write_record(lock.folder(), {shm::this_process(), run_id, p.name, p.file, "", "", lock.folder()});
    s.quiet = o.background;
    if (!existing) write_identity(lock.folder(), identity, s, source_of(p));
    if (!existing && s.depth_lowered) out.line("depth: " + s.depth_reason);
    if (const std::string idle = idle_turns(s); !existing && !idle.empty()) out.line(idle);
    if (const auto why = no_domain_text(p, s); !why.empty() && !existing) out.line(why);
    if (const std::string why = no_spare_text(s); !why.empty()) out.line(why);
    if (!existing && !s.standby_reason.empty()) out.line(standby_text(s));
    u64 first = o.first_is_checkpoint && !existing ? find_newest_checkpoint(s) : o.first;
    extensions.each([&](const run_extension& each) { first = each.first_frame(first); });
    engine e(s, run_id, executable_folder(), o.seconds, out, extensions,
             existing ? engine::beginning::adopt : engine::beginning::fresh, first);
    lock.leave_folder(false);
    const auto plan_again = [&](const pipeline& changed, std::vector<stage_description> described) {
        run_options again = o;
        again.stages = std::move(described);
        return setup_from(changed, again, machine);
    };
    reload->set_target({&s, source_of(p), plan_again, [&](const std::string& program) {
                            out.flush();
                            own[kept_lock_variable] = std::to_string(lock.keep_over_exec(true));
                            try {
                                become(program, o.command_line, own);
                            } catch (...) {
                                lock.keep_over_exec(false);
                                own.erase(kept_lock_variable);
                                throw;
                            }
                        }});
    if (movable_stages(s).empty()) {
        e.set_devices({});
    } else {
        // refused now, and not when the GPU fails
        if (!existing) (void)setup_from(p, o, machine, movable_stages(s));
        if (!devices.stages.empty()) devices.depths = depths_json(s);
        devices.probe = to_json(machine);
        const auto plan_for = [&](const fallback_state& with) {
            machine_offer offer = read_probe(with.probe.dump());
            if (!with.stages.empty()) offer = with_wanted_gpus(std::move(offer), p);
            return setup_from(p, o, offer, with.stages);
        };
        // A reload may have changed other keys of the identity since.
        const auto keep_identity = [&, plan_for](const fallback_state& with) {
            fallback_state configured = with;
            configured.stages.clear();
            auto kept = read_identity(s.directory);
            if (!kept) throw shm_error(s.directory + "/pipeline.json can't be read");
            const nlohmann::json now = identity_of(plan_for(configured));
            for (std::size_t k = 0; k < now["stages"].size() && k < kept->identity["stages"].size(); ++k)
                for (const char* key : {"device", "uuid", "uuids", "memory"})
                    if (now["stages"][k].contains(key))
                        kept->identity["stages"][k][key] = now["stages"][k][key];
            write_identity(s.directory, kept->identity, s, kept->source);
        };
        e.set_devices({&s, plan_for, keep_identity, devices});
    }
    e.attach_extensions();
    e.seats().journal->note(
        ::getpid(), fmt::format("{}: {}, {} stages of {}", s.name, existing ? "is taken over" : "begins",
                                s.stages.size(), s.file));
    if (!existing && !s.depth_reason.empty()) e.seats().journal->note(::getpid(), "depth: " + s.depth_reason);
    try {
        const run_outcome outcome = e.run();
        e.release_reserve();
        const int code = finish(e, s, outcome, o, extensions, out);
        out.flush();
        // A program that begins at a later frame without its states is followed by the next one, too.
        if (code == exit_code::ok || code == exit_code::state_lost)
            next = {reload->successor_after_end(), outcome.end};
        if (outcome.planned_end != ring::end_unknown && outcome.end >= outcome.planned_end) next = {};
        return code;
        // on an error, the caller prints the text; for a run in the background only the log keeps it
    } catch (const error& failed) {
        e.seats().journal->note(::getpid(), fmt::format("error: {}", failed.what()));
        throw;
    }
}

}  // namespace

int run_pipeline(const pipeline& p, const run_options& given_options) {
    variables own = take_own_variables();
    continuation next;
    const int code = run_once(p, given_options, own, next);
    if (next.program.empty()) return code;
    std::vector<std::string> words = given_options.command_line;
    if (const std::size_t n = words.size(); n >= 2 && words[n - 2] == "--first") words.resize(n - 2);
    words.insert(words.end(), {"--first", std::to_string(next.first)});
    become(next.program, words, own);
}

}  // namespace carousel::supervisor
