#include "chaos/run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <optional>
#include <sstream>
#include <thread>

#include "chaos/faults.hpp"
#include "chaos/subject.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json_text.hpp"
#include "core/output_file.hpp"
#include "os/subprocess.hpp"
#include "os/table.hpp"
#include "runs/clean.hpp"
#include "runs/run_lock.hpp"

namespace carousel::supervisor::chaos {
namespace {

using nlohmann::json;
constexpr std::size_t most_hit = 64;
constexpr u64 patience_ns = 3 * ns_per_s;
constexpr f64 on_cpu_s = 1;
constexpr f64 start_patience_s = 60, hosts_patience_s = 600, back_patience_s = 40, longest_s = 24 * 3600;

json read_json(const std::string& file) {
    json j = read_json_file(file);
    return j.is_object() ? over_hosts(std::move(j)) : json();
}

/// Sum over all GPUs; -1: there is no GPU, or the query failed.
i64 gpu_memory_mib() {
    const subprocess_result r = run_subprocess(
        {"nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"}, "", 10'000);
    if (!r.succeeded()) return -1;
    std::istringstream lines(r.output);
    i64 sum = 0;
    for (i64 each = 0; lines >> each;) sum += each;
    return sum;
}

class chaos_run {
public:
    chaos_run(const settings& s, std::ostream& progress, bool on_terminal)
        : s_(s), progress_(progress), on_terminal_(on_terminal), name_(fmt::format("chaos-{}", ::getpid())) {
        std::string folder = (std::filesystem::temp_directory_path() / "carousel-chaos-XXXXXX").string();
        if (::mkdtemp(folder.data()) == nullptr)
            throw output_error(fmt::format("creating {}: {}", folder, errno_text(errno)));
        o_.folder = folder;
        if (!s.log.empty()) log_.emplace(s.log, "choose another --log FILE");
    }
    outcome run();

private:
    [[nodiscard]] std::vector<std::string> words(const std::string& name, const std::string& report,
                                                 u64 frames) const;
    [[nodiscard]] std::string file(const char* name) const { return o_.folder + "/" + name; }
    void know(const run::ps_answer& ps);
    bool wait_for_start(subject& s);
    void report_missing_host(const subject& s);
    void loop(subject& s, pause_watch& watch);
    [[nodiscard]] bool enough() const;
    bool act(subject& s, const step& what);
    bool hit(subject& s, const step& what, const victim& v);
    void kill_supervisor(subject& s, const step& what);
    void return_devices(subject& s);
    void wait_for_all(subject& s, f64 patience_s);
    void end(subject& s);
    /// Waits for `ns`, or until Ctrl-C or SIGTERM, which it remembers: all later waits then end at once.
    bool sleep(u64 ns);
    [[nodiscard]] bool untouched(const victim& v) const {
        return v.running && std::find(hit_.begin(), hit_.end(), std::pair(v.label, v.pid)) == hit_.end();
    }
    /// Reports about another host are slightly old. Therefore a process of that host that was hit counts as
    /// dead even if the report lists it as running.
    [[nodiscard]] bool stands(const victim& v) const { return v.remote ? untouched(v) : v.running; }
    void note(const done& d);
    void print_status(u64 frames);
    void run_calm();
    void find_leaks();
    void spent(const char* on);

    const settings& s_;
    std::ostream& progress_;
    bool on_terminal_;
    std::string name_, run_id_;
    outcome o_;
    std::optional<output_stream> log_;
    interrupts interrupts_;
    std::vector<fault> kinds_;
    std::vector<victim> seats_;  ///< the seats as reported at the start: later, a seat whose process is down
                                 ///< does not report its guards
    /// the processes that were hit last: they count as dead even before the supervisor reports their death
    std::deque<std::pair<std::string, i32>> hit_;
    std::string reported_host_;
    u64 numbers_ = 0, printed_ns_ = 0, phase_ns_ = now_ns();
    u64 tried_ = 0, tried_since_ns_ = 0;  ///< 1 + number of the fault whose planned victim can't take it yet
};

std::vector<std::string> chaos_run::words(const std::string& name, const std::string& report,
                                          u64 frames) const {
    std::vector<std::string> w{"run", s_.file, "--name", name, "--report", report, "--no-color"};
    if (s_.has_displays) w.insert(w.end(), {"--out", ""});
    const auto add = [&](const char* option, const std::optional<std::string>& value) {
        if (value) w.insert(w.end(), {option, *value});
    };
    add("--device", s_.keys.device);
    add("--size", s_.keys.size);
    add("--mesh", s_.keys.mesh);
    if (frames == 0)
        add("--fps", s_.keys.fps);  // the reference run needs no pace, because it produces the same pictures
                                    // at any rate
    for (const std::string& each : s_.keys.set) w.insert(w.end(), {"--set", each});
    if (frames > 0) w.insert(w.end(), {"--frames", std::to_string(frames)});
    // If this program is killed, the run ends by itself.
    if (frames == 0)
        w.insert(w.end(), {"--seconds",
                           std::to_string(static_cast<u64>(s_.seconds > 0 ? s_.seconds + 600 : longest_s))});
    return w;
}

void chaos_run::know(const run::ps_answer& ps) {
    seats_ = seats_of(ps);
    kinds_ = choose_kinds(s_.kinds, seats_, s_.file);
    const bool gpu = std::any_of(seats_.begin(), seats_.end(), [](const victim& v) { return v.on_gpu; });
    o_.gpu_mib_before = gpu ? std::max<i64>(0, o_.gpu_mib_before) : -1;
}

// A host that is not started automatically must be started by the user, once for each run. The printed line
// asks for that.
void chaos_run::report_missing_host(const subject& s) {
    if (!s_.spread) return;
    if (const std::string line = s.last_line("waiting for host "); line != reported_host_) {
        reported_host_ = line;
        progress_ << "chaos: " << line << std::endl;
    }
}

bool chaos_run::sleep(u64 ns) {
    if (!o_.interrupted) o_.interrupted = interrupts_.sleep(ns);
    return o_.interrupted;
}

/// Returns false if it was interrupted before all stages ran. Throws if the run did not start.
bool chaos_run::wait_for_start(subject& s) {
    const f64 patience_s = s_.spread ? hosts_patience_s : start_patience_s;
    for (const u64 until = now_ns() + static_cast<u64>(patience_s * 1e9); now_ns() < until;) {
        report_missing_host(s);
        if (!s.is_alive()) {
            const std::string last = s.last_lines();
            throw error(s.wait(1).value_or(exit_code::stage_failed),
                        fmt::format("{} did not start; its last lines:\n{}", s_.file, last));
        }
        if (const run::ps_answer ps = s.ps(); all_run(ps)) {
            run_id_ = ps.pipeline.run_id.value_or("");
            know(ps);
            return true;
        }
        if (sleep(20 * ns_per_ms)) return false;
    }
    throw error(exit_code::stage_failed,
                fmt::format("{} was not ready; its last lines:\n{}", s_.file, s.last_lines()));
}

bool chaos_run::enough() const {
    if (o_.interrupted || (s_.count > 0 && numbers_ >= s_.count)) return true;
    return s_.seconds > 0 && now_ns() - o_.begun_ns > static_cast<u64>(s_.seconds * 1e9);
}

void chaos_run::loop(subject& s, pause_watch& watch) {
    plan todo(s_.seed, kinds_, s_.rate > 0 ? 1 / s_.rate : 0);
    step next = todo.next();
    for (u64 due = now_ns() + static_cast<u64>(next.wait_s * 1e9); !enough();) {
        print_status(watch.frames());
        const u64 now = now_ns();
        if (now < due) {
            sleep(std::min(due - now, 100 * ns_per_ms));
            continue;
        }
        if (!s.is_alive()) {
            o_.ended_early = true;
            return;
        }
        if (s_.rate <= 0) wait_for_all(s, back_patience_s);
        if (!act(s, next)) {  // no seat can take this fault right now
            sleep(5 * ns_per_ms);
            continue;
        }
        ++numbers_;
        next = todo.next();
        due = now_ns() + static_cast<u64>(next.wait_s * 1e9);
    }
}

/// Returns stages that have moved to the CPU to their GPU, after they have worked there for a while.
void chaos_run::return_devices(subject& s) {
    const std::optional<run::ps_fallback> moved = s.ps().pipeline.fallback;
    if (moved && !moved->stages.empty() && moved->for_s > on_cpu_s)
        (void)s.ask(run::device_request{moved->configured, "", nullptr});
}

bool chaos_run::act(subject& s, const step& what) {
    return_devices(s);
    if (what.kind == fault::supervisor) {
        // Without a living process the rings' memory would be lost and the run would restart, which is not a
        // fault under test.
        const std::vector<victim> seats = seats_of(s.ps());
        if (std::none_of(seats.begin(), seats.end(), [this](const victim& v) { return untouched(v); }))
            return false;
        kill_supervisor(s, what);
        return true;
    }
    std::vector<victim> victims = seats_of(s.ps());
    std::erase_if(victims, [&](const victim& v) {
        const auto same = [&](const victim& known) { return known.label == v.label; };
        const auto known = std::find_if(seats_.begin(), seats_.end(), same);
        return !can_take(known == seats_.end() ? v : *known, what.kind);
    });
    if (victims.empty()) return false;
    if (what.kind != fault::all) {
        // Waits for the planned victim, so that a seed hits the same seats each time. The wait is limited,
        // because a seat that is down for good, or that can't take this fault (a `latest` reader has no
        // deadline to miss), must not end the run.
        const u64 now = now_ns();
        if (tried_ != what.number + 1) tried_since_ns_ = now;
        tried_ = what.number + 1;
        for (u64 k = 0; k < victims.size(); ++k) {
            const victim& v = victims[(what.victim_index + k) % victims.size()];
            if (stands(v) && hit(s, what, v)) return true;
            if (!stands(v) && now - tried_since_ns_ < patience_ns) return false;
        }
        return false;
    }
    bool any = false;
    for (const victim& v : victims) any = (stands(v) && hit(s, what, v)) || any;
    return any;
}

bool chaos_run::hit(subject& s, const step& what, const victim& v) {
    done d{what.number, what.kind, now_ns(), v.label, v.pid, v.stage, 0};
    if (const int signal = row_of(what.kind).signal; signal != 0 && v.remote) {
        if (!s.ask(run::kill_request{v.label, signal}).ok) return false;
    } else if (signal != 0) {
        if (::kill(v.pid, signal) != 0) return false;
    } else {
        if (!s.ask(run::inject_request{v.label, shm::fault_named(name_of(what.kind))}).ok) return false;
    }
    note(d);
    hit_.emplace_back(v.label, v.pid);
    if (hit_.size() > most_hit) hit_.pop_front();
    o_.faults.push_back(std::move(d));
    return true;
}

void chaos_run::kill_supervisor(subject& s, const step& what) {
    done d{what.number, what.kind, now_ns(), "", s.pid(), ~0U, 0};
    s.kill_supervisor();
    sleep(static_cast<u64>(what.supervisor_gap_s * 1e9));
    s.start();
    for (const u64 until = now_ns() + static_cast<u64>(back_patience_s * 1e9);
         now_ns() < until && s.is_alive();) {
        if (s.ps().pipeline.pid) break;
        // Also after Ctrl-C: only a supervisor that has taken the run over can end its stages.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    d.responding_ns = now_ns();
    note(d);
    o_.faults.push_back(std::move(d));
}

void chaos_run::wait_for_all(subject& s, f64 patience_s) {
    for (const u64 until = now_ns() + static_cast<u64>(patience_s * 1e9);
         now_ns() < until && s.is_alive() && !o_.interrupted;) {
        const std::vector<victim> seats = seats_of(s.ps());
        if (!seats.empty() &&
            std::all_of(seats.begin(), seats.end(), [this](const victim& v) { return untouched(v); }))
            return;
        sleep(3 * ns_per_ms);
    }
}

void chaos_run::note(const done& d) {
    if (!log_) return;
    log_->write(json{{"number", d.number},
                     {"fault", name_of(d.kind)},
                     {"seat", d.seat.empty() ? "(supervisor)" : d.seat},
                     {"pid", d.pid},
                     {"at_s", static_cast<f64>(d.time_ns - o_.begun_ns) / 1e9},
                     {"time_ns", d.time_ns}}
                    .dump() +
                "\n");
}

void chaos_run::print_status(u64 frames) {
    const u64 now = now_ns(), every = on_terminal_ ? 200 * ns_per_ms : 10 * ns_per_s;
    if (now - printed_ns_ < every) return;
    printed_ns_ = now;
    const f64 gone = static_cast<f64>(now - o_.begun_ns) / 1e9;
    progress_ << fmt::format("{}chaos: {}{} faults, {} frames, {}{}{}", on_terminal_ ? "\r\x1b[K" : "",
                             numbers_, s_.count > 0 ? fmt::format(" of {}", s_.count) : "", frames,
                             human_seconds(gone), s_.seconds > 0 ? " of " + human_seconds(s_.seconds) : "",
                             on_terminal_ ? "" : "\n")
              << std::flush;
}

void chaos_run::run_calm() {
    // a run that is interrupted during its start writes no report
    const u64 frames = o_.report.is_object() ? o_.report.value("frames", u64{0}) : 0;
    if (!s_.compare || o_.interrupted || frames == 0) return;
    progress_ << fmt::format("{}chaos: running a fault-free reference of {} frames\n",
                             on_terminal_ ? "\r\x1b[K" : "", frames)
              << std::flush;
    subject calm(words(name_ + "-calm", file("calm.json"), frames), name_ + "-calm", file("calm.log"));
    calm.start();
    f64 patience = 120 + 10 * static_cast<f64>(o_.ended_ns - o_.begun_ns) / 1e9;
    if (s_.spread) patience += hosts_patience_s;
    for (const u64 until = now_ns() + static_cast<u64>(patience * 1e9);
         !calm.wait(0.05) && now_ns() < until && !o_.interrupted;) {
        report_missing_host(calm);
        sleep(ns_per_ms);
    }
    o_.calm = read_json(file("calm.json"));
}

void chaos_run::find_leaks() {
    std::error_code ignored;
    for (const char* which : {"", "-calm"})  // created for these runs only
        if (s_.spread) std::filesystem::remove(s_.token_folder + "/" + name_ + which + ".token", ignored);
    for (const leftover& l : find_leftovers())
        if (l.name.starts_with(name_) || (!run_id_.empty() && l.run_id == run_id_))
            o_.leaked.push_back(l.kind + " " + l.path);
    if (const auto alive = living_processes(run_id_); alive > 0)
        o_.leaked.push_back(fmt::format("{} processes of the run", alive));
    if (o_.gpu_mib_before < 0) return;
    for (const u64 until = now_ns() + 10 * ns_per_s; now_ns() < until;) {  // the driver frees the memory late
        o_.gpu_mib_after = gpu_memory_mib();
        if (o_.gpu_mib_after <= o_.gpu_mib_before || sleep(200 * ns_per_ms)) break;
    }
}

void chaos_run::spent(const char* on) {
    const u64 now = now_ns();
    o_.spent_s.emplace_back(on, static_cast<f64>(now - phase_ns_) / 1e9);
    phase_ns_ = now;
}

/// Ends the run and reads its report.
void chaos_run::end(subject& s) {
    if (!s.ask(run::end_request{}).ok) s.signal(SIGINT);  // it has not got as far as its control socket
    const std::optional<int> code = s.wait(90);
    o_.exit_code = code.value_or(-1);
    o_.report = read_json(file("report.json"));
}

outcome chaos_run::run() {
    o_.gpu_mib_before = gpu_memory_mib();
    {
        subject s(words(name_, file("report.json"), 0), name_, file("run.log"));
        s.start();
        const bool started = wait_for_start(s);
        if (started) {
            pause_watch watch(run_id_);
            sleep(ns_per_s);
            watch.calm_is_over();
            spent("start");
            o_.begun_ns = now_ns();
            loop(s, watch);
            spent("faults");
            wait_for_all(s, back_patience_s);
            spent("all back");
            o_.ended_ns = now_ns();
            o_.pauses = watch.pauses();
        }
        end(s);
        spent(started ? "end" : "start");
    }
    run_calm();
    spent("fault-free run");
    find_leaks();
    spent("leaks");
    if (on_terminal_) progress_ << "\r\x1b[K" << std::flush;
    return std::move(o_);
}

}  // namespace

outcome run_chaos(const settings& s, std::ostream& progress, bool on_terminal) {
    return chaos_run(s, progress, on_terminal).run();
}

}  // namespace carousel::supervisor::chaos
