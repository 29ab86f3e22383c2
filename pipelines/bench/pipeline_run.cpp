#include "bench/pipeline_run.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/user_input.hpp"
#include "os/spawn.hpp"
#include "os/subprocess.hpp"
#include "shm/process_id.hpp"

namespace carousel::bench {
namespace {

/// Returns the parent of a process; 0 if the process is gone.
i32 parent_of(i32 pid) {
    std::ifstream in(fmt::format("/proc/{}/stat", pid));
    std::string text;
    std::getline(in, text);
    const auto at = text.rfind(')');  // the second field, the command in parentheses, may contain any
                                      // character
    char state = 0;
    i32 parent = 0;
    if (at != std::string::npos) std::istringstream(text.substr(at + 1)) >> state >> parent;
    return parent;
}

std::vector<i32> all_processes() {
    std::vector<i32> pids;
    DIR* folder = ::opendir("/proc");
    if (folder == nullptr) return pids;
    while (const dirent* entry = ::readdir(folder)) {
        const std::string name = entry->d_name;
        i32 pid = 0;
        const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (failed == std::errc() && end == name.data() + name.size()) pids.push_back(pid);
    }
    ::closedir(folder);
    return pids;
}

namespace fs = std::filesystem;
using nlohmann::json;

// longest time until frames flow; it is long because a start is slow on a loaded machine, and slow if it
// creates GPU contexts or loads a mesh
constexpr f64 start_limit_s = 120;
constexpr f64 end_limit_s = 60;
constexpr u64 flowing = 3;  // after this number of delivered frames, the pipeline is considered to deliver
                            // frames steadily
constexpr u64 poll_interval_ns = 50 * ns_per_ms;

/// Returns the last line of a program's log that reports an error or, if no line reports an error, the last
/// line of the log.
std::string last_word_of(const std::string& log) {
    std::string last, problem;
    std::istringstream in(log);
    for (std::string line; std::getline(in, line);) {
        if (line.empty()) continue;
        last = line;
        if (line.find("error: ") != std::string::npos) problem = line.substr(line.find("error: ") + 7);
    }
    return !problem.empty() ? problem : !last.empty() ? last : "it printed nothing";
}

std::vector<std::string> command_of(const run_order& o) {
    std::vector<std::string> words{o.programs + "/carousel", "run", o.file, "--no-color", "--frames", "0"};
    words.insert(words.end(), o.words.begin(), o.words.end());
    return words;
}

/// A running `carousel run`. The run ends when this object is destroyed, and by itself if this process is
/// killed.
class running {
public:
    running(const run_order& o, supervisor::interrupts& ctrl_c) : order_(o), ctrl_c_(ctrl_c) {
        supervisor::spawn_request r;
        r.argv = command_of(o);
        // If this process is killed by SIGKILL it cannot end the run, so the run gets its own time limit.
        const f64 by_itself_s = start_limit_s + o.warm_up_s + (o.frames > 0 ? 3600 : o.seconds) + end_limit_s;
        for (const std::string& word :
             {std::string("--name"), name_, std::string("--report"), scratch_.file("report.json"),
              std::string("--seconds"), fmt::format("{:.0f}", by_itself_s)})
            r.argv.push_back(word);
        const shm::unique_fd log(
            ::open(scratch_.file("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
        if (!log)
            throw output_error(
                fmt::format("making the file {}: {}", scratch_.file("log"), errno_text(errno)));
        r.output = log.get();
        process_ = supervisor::spawn(r);
    }
    ~running() {
        if (!ended()) end();
    }
    running(const running&) = delete;
    running& operator=(const running&) = delete;

    /// Throws interrupted on Ctrl-C, error if the run has ended by itself.
    void wait(u64 ns) {
        if (ctrl_c_.sleep(ns)) throw interrupted{};
        if (ended()) fail("the run has ended");
    }

    [[nodiscard]] std::optional<sample> try_sample() const {
        constexpr u32 patience_ms = 10'000;
        const auto result = supervisor::run_subprocess(
            {order_.programs + "/carousel", "ps", "-p", name_, "--json"}, "", patience_ms);
        try {
            if (result.succeeded()) return read_sample(result.output);
        } catch (const json::exception&) {
            // there is no reply yet, or the reply is incomplete because the run is ending
        }
        return std::nullopt;
    }
    sample require_sample() {
        for (int k = 0; k < 100; ++k) {
            if (const auto l = try_sample()) return *l;
            wait(poll_interval_ns);
        }
        fail("`carousel ps` has not answered");
    }

    /// Ends the run, as Ctrl-C does, and returns the run's report.
    json end() {
        (void)shm::signal_pidfd(process_.pidfd.get(), SIGINT);
        const u64 limit = now_ns() + static_cast<u64>(end_limit_s * 1e9);
        while (!ended() && now_ns() < limit) ::usleep(5000);
        if (!ended()) {
            (void)shm::signal_pidfd(process_.pidfd.get(), SIGKILL);
            while (!ended()) ::usleep(5000);
        }
        return read_json_file(scratch_.file("report.json"));
    }

    [[noreturn]] void fail(const std::string& what) {
        while (!ended()) end();
        // false for the exit code that our SIGINT causes
        const bool own = status_.exit_code > 0 && status_.exit_code < 126;
        const int code = own ? status_.exit_code : exit_code::stage_failed;
        throw error(code, fmt::format("{}: {}: {}", order_.programs, what,
                                      last_word_of(read_file(scratch_.file("log")).value_or(""))));
    }

private:
    bool ended() {
        if (!status_.known && supervisor::has_ended(process_.pidfd.get())) {
            status_ = supervisor::reap(process_.pidfd.get());
            status_.known = true;
        }
        return status_.known;
    }

    const run_order& order_;
    supervisor::interrupts& ctrl_c_;
    scratch_folder scratch_{"carousel-bench-XXXXXX"};
    std::string name_ = fmt::format("bench-{}", ::getpid());
    supervisor::spawned process_;
    supervisor::exit_status status_;
};

/// Throws error if the run lost, repeated or tore a frame or had deaths, because the figures of such a run
/// are invalid.
void require_whole(const json& report, running& run) {
    if (!report.is_object()) run.fail("it wrote no report");
    for (const char* key : {"lost", "repeated", "torn", "deaths", "dead_letter_count"})
        if (const auto at = report.find(key); at != report.end() && at->is_number() && at->get<f64>() > 0)
            run.fail(fmt::format("its figures are not valid: the report has {} {}", at->dump(), key));
}

/// Uses p50 and p99 of the slowest sink.
void take_latencies(const sample& first, const sample& last, const json& report, run_figures& f) {
    for (const json& stage : report.value("stages", json::array())) {
        const json sink = stage.value("end_to_end_ms", json::object());
        f.whole_p50_ms = std::max(f.whole_p50_ms, sink.value("p50", 0.0));
        f.whole_p99_ms = std::max(f.whole_p99_ms, sink.value("p99", 0.0));
    }
    f.latency_of_window = last.counts_latency;
    if (!last.counts_latency) f.p50_ms = f.whole_p50_ms, f.p99_ms = f.whole_p99_ms;
    for (std::size_t k = 0; k < last.latencies.size(); ++k) {
        const auto there =
            added(k < first.latencies.size() ? first.latencies[k] : std::vector<counted_range>{},
                  last.latencies[k]);
        f.p50_ms = std::max(f.p50_ms, quantile_of(there, 0.5));
        f.p99_ms = std::max(f.p99_ms, quantile_of(there, 0.99));
    }
}

}  // namespace

std::vector<i32> family_of(i32 root) {
    std::multimap<i32, i32> children;
    for (const i32 pid : all_processes()) children.emplace(parent_of(pid), pid);
    std::vector<i32> family{root};
    for (std::size_t k = 0; k < family.size(); ++k) {
        const auto [first, last] = children.equal_range(family[k]);
        for (auto at = first; at != last; ++at) family.push_back(at->second);
    }
    return family;
}

std::map<i32, u64> cpu_ns_of(const std::vector<i32>& pids) {
    std::map<i32, u64> out;
    for (const i32 pid : pids) {
        clockid_t clock{};
        timespec t{};
        if (::clock_getcpuclockid(pid, &clock) == 0 && ::clock_gettime(clock, &t) == 0)
            out[pid] = static_cast<u64>(t.tv_sec) * 1'000'000'000U + static_cast<u64>(t.tv_nsec);
    }
    return out;
}

u64 cpu_ns_since(const std::map<i32, u64>& before, const std::map<i32, u64>& now) {
    u64 sum = 0;
    for (const auto& [pid, ns] : now) {
        const auto at = before.find(pid);
        const u64 had = at == before.end() ? 0 : at->second;
        if (ns > had) sum += ns - had;
    }
    return sum;
}

memory_figures memory_of(const std::vector<i32>& pids) {
    memory_figures sum;
    for (const i32 pid : pids) {
        u64 pages = 0;
        std::ifstream statm(fmt::format("/proc/{}/statm", pid));
        if (statm >> pages >> pages) sum.resident += pages * static_cast<u64>(::sysconf(_SC_PAGESIZE));
        std::ifstream rollup(fmt::format("/proc/{}/smaps_rollup", pid));
        for (std::string line; std::getline(rollup, line);) {
            u64 kib = 0;
            if (!line.starts_with("Pss:")) continue;
            if (std::istringstream(line.substr(4)) >> kib) sum.proportional += kib * 1024;
            break;
        }
    }
    return sum;
}

f64 gpu_bytes_in_use() {
    constexpr u32 patience_ms = 10'000;
    const auto result = supervisor::run_subprocess(
        {"nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"}, "", patience_ms);
    if (!result.succeeded()) return -1;
    f64 sum = 0, mib = 0;
    std::istringstream in(result.output);
    bool any = false;
    for (std::string line; std::getline(in, line);)
        if (std::istringstream(line) >> mib) sum += mib * 1024 * 1024, any = true;
    return any ? sum : -1;
}

scratch_folder::scratch_folder(const char* pattern) : path_((fs::temp_directory_path() / pattern).string()) {
    if (::mkdtemp(path_.data()) == nullptr)
        throw output_error(fmt::format("creating the folder {}: {}", path_, errno_text(errno)));
}
scratch_folder::~scratch_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

std::string programs_of(const std::string& build) {
    for (const fs::path& folder : {fs::path(build), fs::path(build) / "bin"})
        if (::access((folder / "carousel").c_str(), X_OK) == 0)
            return absolute_path(folder).lexically_normal().string();
    throw config_error(
        fmt::format("--against {0}: neither {0} nor {0}/bin contains the program \"carousel\"; expected a "
                    "build folder (build the target `programs`) or the prefix of `cmake --install`",
                    build));
}

namespace {
bool is_trying(const json& stages) {
    return std::any_of(stages.begin(), stages.end(), [](const json& s) {
        const auto at = s.find("reach");
        return at != s.end() && *at == "trying";
    });
}
}  // namespace

sample read_sample(const std::string& ps_json) {
    const json all = parse_json(ps_json, json_channel::document);
    const json& p = all.at("pipeline");
    sample l{p.at("pid"), p.at("frames"), p.at("uptime_s"), is_trying(all.at("stages")), false, {}};
    for (const json& stage : all.at("stages")) {
        const auto counts = stage.find("end_to_end");
        if (counts == stage.end() || !counts->is_array() || stage.value("instance", 0) != 0) continue;
        l.counts_latency = true;
        auto& sink = l.latencies.emplace_back();
        for (const json& range : *counts) sink.push_back({range.at(0), range.at(1), range.at(2)});
    }
    return l;
}

std::string dry_run(const run_order& o) {
    std::vector<std::string> words = command_of(o);
    words.emplace_back("--dry-run");
    constexpr u32 patience_ms = 60'000;
    const auto result = supervisor::run_subprocess(words, "", patience_ms);
    if (result.succeeded()) return result.output;
    throw error(
        result.exit_code > 0 ? result.exit_code : exit_code::stage_failed,
        result.messages.empty()
            ? fmt::format("{}: {}", words.front(), result.started ? result.ending(patience_ms) : result.error)
            : last_word_of(result.messages));
}

run_figures measure_run(const run_order& o, supervisor::interrupts& ctrl_c) {
    const f64 gpu_before = gpu_bytes_in_use();
    running run(o, ctrl_c);
    const u64 limit = now_ns() + static_cast<u64>(start_limit_s * 1e9);
    for (std::optional<sample> l; !l || l->frames < flowing || l->tries; l = run.try_sample()) {
        run.wait(poll_interval_ns);
        if (now_ns() > limit)
            run.fail(fmt::format(
                "{} after {} s",
                l && l->tries ? "it is still testing how to reach rings on another GPU" : "no frames",
                start_limit_s));
    }
    run.wait(static_cast<u64>(o.warm_up_s * 1e9));
    const sample first = run.require_sample();
    const auto cpu_first = cpu_ns_of(family_of(first.supervisor_pid));
    run.wait(static_cast<u64>((o.frames > 0 ? 0.05 : o.seconds) * 1e9));
    sample last = run.require_sample();
    while (o.frames > 0 && last.frames < first.frames + o.frames) {
        run.wait(poll_interval_ns);
        last = run.require_sample();
    }
    const std::vector<i32> family = family_of(last.supervisor_pid);
    const auto cpu_last = cpu_ns_of(family);
    run_figures f;
    f.frames = last.frames - first.frames;
    f.seconds = last.uptime_s - first.uptime_s;
    if (f.frames == 0) run.fail("no frame was delivered in the measured time: increase --seconds");
    f.frames_per_second = static_cast<f64>(f.frames) / f.seconds;
    f.cpu_ms_per_frame =
        static_cast<f64>(cpu_ns_since(cpu_first, cpu_last)) / 1e6 / static_cast<f64>(f.frames);
    const memory_figures memory = memory_of(family);
    f.memory_bytes = static_cast<f64>(memory.proportional > 0 ? memory.proportional : memory.resident);
    f.resident_bytes = static_cast<f64>(memory.resident);
    if (const f64 gpu_now = gpu_bytes_in_use(); gpu_before >= 0 && gpu_now >= 0)
        f.gpu_bytes = std::max(0.0, gpu_now - gpu_before);
    const json report = run.end();
    require_whole(report, run);
    take_latencies(first, last, report, f);
    return f;
}

}  // namespace carousel::bench
