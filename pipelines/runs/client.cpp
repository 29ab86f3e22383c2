#include "runs/client.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "control/client.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/user_input.hpp"
#include "os/table.hpp"
#include "run/liveness.hpp"
#include "runs/spaces.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_id.hpp"
#include "shm/runtime_folder.hpp"

namespace carousel::supervisor {
namespace {

constexpr u32 repoll_us = 20'000;
constexpr u64 successor_patience_ns = 2 * ns_per_s;

u64 deadline_after(f64 seconds, u64 since_ns = 0) {
    return (since_ns == 0 ? now_ns() : since_ns) +
           static_cast<u64>(std::max(0.0, seconds) * static_cast<f64>(ns_per_s));
}

std::string list_of(const std::vector<run::record>& runs) {
    std::string text;
    for (const run::record& r : runs)
        text +=
            fmt::format("\n  {}  (pid {}{})", r.name, r.supervisor.pid, r.file.empty() ? "" : ", " + r.file);
    return text;
}

std::string waited(f64 wait_s) { return wait_s > 0 ? fmt::format(" after {:.3g} s", wait_s) : ""; }

/// Returns true if the process ignores the signal; false if it does not, or if that cannot be determined.
bool ignores(i32 pid, int signal) {
    constexpr std::string_view field = "\nSigIgn:";
    const std::string status = read_file(fmt::format("/proc/{}/status", pid)).value_or("");
    const std::size_t at = status.find(field);
    if (at == std::string::npos) return false;
    const u64 ignored = std::strtoull(status.c_str() + at + field.size(), nullptr, 16);
    return (ignored >> static_cast<u32>(signal - 1) & 1U) != 0;
}

/// Returns the runs that continue without a supervisor.
std::vector<run::record> orphans() {
    std::vector<run::record> runs = run::recorded_runs();
    std::erase_if(runs, [](const run::record& r) { return is_alive(r) || !run::orphaned_stages_of(r).any; });
    return runs;
}

std::string orphan_text(const run::record& r) {
    const std::string gone =
        fmt::format("\n  {}: its supervisor (pid {}) was killed, ", r.name, r.supervisor.pid);
    if (!run::is_of_here(r))
        return gone + fmt::format(
                          "its stages continue in another pid or time namespace (a container): `carousel run "
                          "{}` with the same settings takes the run over there",
                          r.file);
    return gone +
           fmt::format(
               "{} of its stages continue: `carousel run {}` with the same settings takes the run over",
               run::orphaned_stages_of(r).count, r.file);
}

std::string orphans_text() {
    std::string text;
    for (const run::record& r : orphans()) text += orphan_text(r);
    return text;
}

[[noreturn]] void refuse_choice(const std::string& name, const std::vector<run::record>& runs, f64 wait_s) {
    if (!name.empty())
        if (is_space(name))
            throw config_error(
                fmt::format("\"{0}\" is a space, not a pipeline, and has clients, not stages: `carousel ps "
                            "-p {0}` shows them, `carousel down -p {0}` ends it",
                            name));
    if (runs.empty())
        throw config_error(fmt::format(
            "{} is running{}; start one with `carousel run FILE` (searched in {}{}){}{}",
            name.empty() ? "no pipeline" : fmt::format("no pipeline \"{}\"", name), waited(wait_s),
            run::runs_folder(), shm::unused_runtime_text(), list_of_spaces(), orphans_text()));
    if (name.empty())
        throw config_error("several pipelines are running; choose one with -p NAME:" + list_of(runs) +
                           list_of_spaces() + orphans_text());
    std::vector<std::string> names;
    for (const run::record& r : runs) names.push_back(r.name);
    throw config_error(fmt::format("no pipeline \"{}\" is running{}{}; these are:{}{}", name, waited(wait_s),
                                   did_you_mean_clause(name, names), list_of(runs), orphans_text()));
}

std::string text_or(const std::optional<std::string>& text) { return text.value_or("-"); }

/// Formats a number, including an integer count, for the table.
template <typename T>
std::string number_or(const std::optional<T>& number, std::string (*as_text)(f64)) {
    return number ? as_text(static_cast<f64>(*number)) : "-";
}

std::string whole(f64 v) { return fmt::format("{:.0f}", v); }
std::string percent(f64 v) { return fmt::format("{:.0f}%", v); }
std::string bytes(f64 v) { return human_bytes(v > 0 ? static_cast<u64>(v) : 0); }

// A run whose supervisor was killed still counts as a candidate. While such a run exists, a user who means
// another run must give the name of the other run.
run::record choose(const std::string& name, f64 wait_s, bool lost_too, u64 since_ns = 0) {
    const u64 deadline = deadline_after(wait_s, since_ns);
    for (;;) {
        const std::vector<run::record> runs = run::living_runs(), lost = orphans();
        std::vector<run::record> candidates = runs;
        if (lost_too) candidates.insert(candidates.end(), lost.begin(), lost.end());
        const auto named = std::find_if(candidates.begin(), candidates.end(), [&](const run::record& r) {
            return r.name == name || r.run_id == name;
        });
        if (named != candidates.end()) return *named;
        const std::size_t all = runs.size() + lost.size();
        if (name.empty() && all == 1 && candidates.size() == 1) return candidates.front();
        if ((name.empty() && !candidates.empty() && all > 1) || now_ns() >= deadline)
            refuse_choice(name, runs, wait_s);
        ::usleep(repoll_us);
    }
}

}  // namespace

run::record choose_pipeline(const std::string& name, f64 wait_s, u64 since_ns) {
    return choose(name, wait_s, false, since_ns);
}
run::record choose_watched(const std::string& name, f64 wait_s) { return choose(name, wait_s, true); }

bool still_running(run::record& r, u64& gone_since_ns) {
    if (is_alive(r)) {
        gone_since_ns = 0;
        return true;
    }
    auto record = run::read_record(run::run_folder(r.name));
    if (!record || record->run_id != r.run_id) return false;
    if (is_alive(*record)) {
        record->name = r.name;
        r = std::move(*record);
        gone_since_ns = 0;
        return true;
    }
    if (gone_since_ns == 0 || run::orphaned_stages_of(r).any) gone_since_ns = now_ns();
    return now_ns() - gone_since_ns < successor_patience_ns;
}

std::string ps_table(const run::ps_answer& ps) {
    const run::ps_pipeline& p = ps.pipeline;
    std::string out = printable(fmt::format("{}: {}, pid {}, device {}, up {}, {} frames, {} frames/s, {}",
                                            text_or(p.name), text_or(p.state_text ? p.state_text : p.state),
                                            number_or(p.pid, whole), text_or(p.device),
                                            number_or(p.uptime_s, human_seconds), number_or(p.frames, whole),
                                            number_or(p.frames_per_second, human_rate), text_or(p.file))) +
                      "\n";
    if (const std::string limit = p.limit(); !limit.empty()) out += printable(limit) + "\n";
    const auto of_name = [&](const std::string& name) {
        return std::count_if(ps.stages.begin(), ps.stages.end(),
                             [&](const run::ps_stage& r) { return text_or(r.name) == name; });
    };
    table t({"STAGE", ">PID", "STATE", ">AGE", ">RESTARTS", "LAST EXIT", ">FRAMES/S", ">FRAMES", ">BUSY",
             ">CPU", ">MEMORY", "DEVICE"});
    for (const run::ps_stage& r : ps.stages) {
        std::string name = text_or(r.name), memory = number_or(r.memory_bytes, bytes);
        if (r.standby_memory_bytes) memory += " + " + human_bytes(*r.standby_memory_bytes);
        if (of_name(name) > 1) name.append(1, '.').append(number_or(r.instance, whole));
        t.add({name, r.pid.value_or(0) > 0 ? number_or(r.pid, whole) : "-",
               r.waits_for ? "waiting: " + *r.waits_for : text_or(r.state), number_or(r.age_s, human_seconds),
               number_or(r.restarts, whole), text_or(r.last_exit), number_or(r.frames_per_second, human_rate),
               number_or(r.frames, whole), number_or(r.busy, [](f64 v) { return percent(v * 100); }),
               number_or(r.cpu_percent, percent), memory, text_or(r.device)});
    }
    out += t.text();
    for (const run::ps_host& each : ps.hosts) out += printable(run::describe(each)) + "\n";
    for (const std::string& each : run::depth_sentences(ps)) out += printable(each) + "\n";
    for (const std::string& each : ps.problems) out += "! " + printable(each) + "\n";
    return out;
}

namespace {

/// Returns a pidfd of the supervisor. For a supervisor in another namespace, the pidfd is taken from the
/// connection to it, because the pid in the record is not valid here. Empty if the supervisor has ended.
shm::unique_fd open_supervisor(const run::record& run) {
    if (run::is_of_here(run)) {
        shm::unique_fd supervisor(shm::open_pidfd(run.supervisor));
        if (supervisor || errno == ESRCH) return supervisor;
        throw shm_error(fmt::format("pipeline \"{}\": opening its supervisor (pid {}): {}", run.name,
                                    run.supervisor.pid, errno_text(errno)));
    }
    const shm::unique_fd socket = shm::connect_to(run.socket(), ns_per_s);
    const int why = errno;
    shm::peer_process peer = socket ? shm::peer_process_of(socket.get(), 0) : shm::peer_process{};
    if (peer.pidfd || run::liveness_of(run) == run::liveness::over) return std::move(peer.pidfd);
    throw shm_error(fmt::format(
        "pipeline \"{}\": its supervisor (pid {} in another namespace) is running and can't be signalled "
        "from here: {}; run `carousel down` in its container",
        run.name, run.supervisor.pid, socket ? "the kernel provides no pidfd for it" : errno_text(why)));
}

/// Asks the supervisor to end, as Ctrl-C does. A supervisor that ignores SIGINT, because a script started it
/// with `&`, gets a request over its socket.
void interrupt(const run::record& run, int supervisor, f64 timeout_s) {
    if (run::is_of_here(run) && ignores(run.supervisor.pid, SIGINT)) {
        (void)run::client(run).ask(run::end_request{true}, 0, std::min(timeout_s, 5.0));
        return;
    }
    const int failed = shm::signal_pidfd(supervisor, SIGINT);
    if (failed == EINVAL)
        throw shm_error(fmt::format(
            "pipeline \"{}\": its supervisor (pid {} there) can't be signalled from here, because its pid "
            "namespace is not below this process's; run `carousel down -p {}` in its container",
            run.name, run.supervisor.pid, run.name));
    if (failed != 0 && failed != ESRCH)
        throw shm_error(fmt::format("pipeline \"{}\": signalling its supervisor (pid {}): {}", run.name,
                                    run.supervisor.pid, errno_text(failed)));
}

}  // namespace

void end_pipeline(const run::record& run, f64 timeout_s) {
    const shm::unique_fd supervisor = open_supervisor(run);
    if (!supervisor) return;  // ended in the meantime
    interrupt(run, supervisor.get(), timeout_s);
    const u64 deadline = deadline_after(timeout_s);
    if (events_of(supervisor.get(), POLLIN, deadline) != 0) return;
    throw shm_error(fmt::format(
        "pipeline \"{}\" (pid {}) has not ended within {:.3g} s; repeat the command to end it at once",
        run.name, run.supervisor.pid, timeout_s));
}

}  // namespace carousel::supervisor
