#include "cli/profile.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/user_input.hpp"
#include "os/event_loop.hpp"
#include "os/spawn.hpp"
#include "run/directory.hpp"
#include "shm/process_id.hpp"
#include "spec/programs.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& path) {
    std::error_code failed;
    return fs::is_regular_file(path, failed) && ::access(path.c_str(), X_OK) == 0;
}

std::string in_path(const std::string& program) {
    const char* all = std::getenv("PATH");
    const std::string text = std::string(all == nullptr ? "/usr/bin:/bin" : all) + ':';
    for (std::size_t at = 0, end; (end = text.find(':', at)) != std::string::npos; at = end + 1)
        if (const fs::path found = fs::path(text.substr(at, end - at)) / program;
            end > at && is_program(found))
            return found.string();
    return "";
}

/// Returns the program FOLDER/VERSION/BELOW of the newest version: of all such programs, the one whose path
/// is last in the order of names.
std::string newest_below(const fs::path& folder, const std::string& below) {
    std::string newest;
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
        if (const fs::path found = at->path() / below; is_program(found))
            newest = std::max(newest, found.string());
    return newest;
}

std::string where_packages_put(const std::string& tool) {
    if (is_program("/usr/local/cuda/bin/" + tool)) return "/usr/local/cuda/bin/" + tool;
    const fs::path systems = "/opt/nvidia/nsight-systems", compute = "/opt/nvidia/nsight-compute";
    if (tool == "ncu") return newest_below(compute, "ncu");
    for (const auto& [folder, below] : {std::pair{systems, "bin/nsys"},
                                        {systems, "target-linux-x64/nsys"},
                                        {compute, "host/target-linux-x64/nsys"}})
        if (std::string found = newest_below(folder, below); !found.empty()) return found;
    return "";
}

/// Returns the report that a profiler has written: FILE with one of the profiler's extensions; "" if there is
/// no report.
std::string written(const std::string& report, const std::vector<std::string>& endings) {
    for (const std::string& ending : endings) {
        std::error_code failed;
        if (fs::is_regular_file(report + ending, failed)) return report + ending;
    }
    return "";
}

void remove_old(const std::string& report, const std::vector<std::string>& endings) {
    std::error_code ignored;
    for (const std::string& ending : endings) fs::remove(report + ending, ignored);
}

// .qdstrm is last, because such a file can be converted only on a host.
const std::vector<std::string> nsys_endings = {".nsys-rep", ".qdrep", ".qdstrm"};
const std::vector<std::string> ncu_endings = {".ncu-rep"};

bool names_key(const start_arguments& a, const std::string& key) {
    return std::any_of(a.keys.set.begin(), a.keys.set.end(),
                       [&](const std::string& s) { return s.starts_with(key + "="); });
}

/// Sends Ctrl-C to the run that nsys has started, so that the run ends as usual and is recorded completely.
/// If that run does not exist yet, or if this is a second Ctrl-C, sends the signal to nsys and all its
/// children.
void pass_on(const std::string& name, const spawned& nsys, bool again) {
    const std::optional<run::record> run = run::read_record(run::run_folder(name));
    if (run && is_alive(*run) && !again)
        ::kill(run->supervisor.pid, SIGINT);
    else
        ::kill(-nsys.pid, SIGINT);
}

}  // namespace

profile_request profile_from(const std::string& text) {
    if (text.empty()) return {};
    if (text == "nsys") return {"nsys", ""};
    if (text.starts_with("ncu:") && text.size() > 4) return {"ncu", text.substr(4)};
    throw config_error(
        fmt::format("--profile {}: expected nsys (all stages on one timeline) or ncu:STAGE (counters of that "
                    "stage's kernels)",
                    text));
}

std::string profiler_path(const std::string& tool) {
    const std::string variable = tool == "nsys" ? "CAROUSEL_NSYS" : "CAROUSEL_NCU";
    if (const char* named = std::getenv(variable.c_str()); named != nullptr && *named != 0) {
        if (is_program(named)) return named;
        throw config_error(fmt::format("{}={}: no such program", variable, named));
    }
    std::string found = in_path(tool);
    if (found.empty()) found = where_packages_put(tool);
    if (!found.empty()) return found;
    throw config_error(
        fmt::format("--profile {0}: {0} is neither in PATH nor below /opt/nvidia: install {1} (apt-get "
                    "install {2}, from NVIDIA's CUDA repository), or set {3}=PATH",
                    tool, tool == "nsys" ? "Nsight Systems" : "Nsight Compute",
                    tool == "nsys" ? "nsight-systems" : "nsight-compute", variable));
}

std::vector<std::string> nsys_command(const std::string& nsys, const std::string& report,
                                      const std::string& carousel, const start_arguments& a) {
    // nsys profiles stages as its descendants; it does not wait for processes that outlive the run (there
    // should be none).
    std::vector<std::string> out{nsys,
                                 "profile",
                                 "--trace=cuda,nvtx",
                                 "--sample=none",
                                 "--cpuctxsw=none",
                                 "--wait=primary",
                                 "--force-overwrite=true",
                                 "--output=" + as_pattern(report),
                                 carousel};
    for (std::size_t k = 0; k < a.words.size(); ++k) {
        if (a.words[k] == "--profile")
            ++k;
        else if (!a.words[k].starts_with("--profile="))
            out.push_back(a.words[k]);
    }
    // The timeout is raised, because the first frame may take seconds under a profiler.
    if (!names_key(a, "frame_timeout_ms") && !names_key(a, "pipeline.frame_timeout_ms"))
        out.insert(out.end(), {"--set", "frame_timeout_ms=60000"});
    // The time is limited, because a timeline grows by megabytes per second.
    if (!a.keys.frames && a.seconds_s == 0) out.insert(out.end(), {"--seconds", "10"});
    return out;
}

std::string ncu_prefix(const std::string& ncu, const std::string& report, const std::string& stage) {
    const nlohmann::json words = {ncu,        "--clock-control", "none", "--launch-skip",
                                  "300",      "--launch-count",  "20",   "--force-overwrite",
                                  "--export", as_pattern(report)};
    return fmt::format("{}.prefix={}", stage, words.dump());  // a JSON list of strings is also valid TOML
}

int run_below_nsys(const start_arguments& a, const std::string& name, const cli_environment& env) {
    const std::string report = (working_directory() / name).string();
    remove_old(report, nsys_endings);
    const std::vector<std::string> command =
        nsys_command(profiler_path("nsys"), report, executable_folder() + "/carousel", a);
    if (!a.keys.frames && a.seconds_s == 0)
        env.err << "profiling for 10 s; use --seconds S or --frames N to change this\n" << std::flush;
    interrupts ctrl_c;
    spawn_request r;
    r.argv = command;
    const spawned nsys = spawn(r);
    bool again = false;
    while (!has_ended(nsys.pidfd.get())) {
        if (!ctrl_c.sleep(50 * ns_per_ms)) continue;
        pass_on(name, nsys, again);
        again = true;
    }
    const exit_status how = reap(nsys.pidfd.get());
    const std::string file = written(report, nsys_endings);
    if (!file.empty())
        env.out << fmt::format("nsys report: {} (nsys-ui FILE, or {} stats FILE)\n", file, command.front());
    else
        env.err << fmt::format("nsys wrote no report {}{}; see its output above\n", report,
                               nsys_endings.front());
    const int code = how.signal != 0 ? 128 + how.signal : how.exit_code;
    return code == exit_code::ok && file.empty() ? exit_code::output : code;
}

void print_ncu_report(const std::string& report, const cli_environment& env) {
    const u64 limit = now_ns() + 30 * ns_per_s;  // ncu writes the report after its stage has ended
    while (written(report, ncu_endings).empty() && now_ns() < limit) ::usleep(50'000);
    if (const std::string file = written(report, ncu_endings); !file.empty())
        env.out << fmt::format("ncu report: {} (ncu-ui FILE, or ncu --import FILE)\n", file);
    else
        env.err << fmt::format(
            "ncu wrote no report {}{}: see its output above (it profiles launches 301 to 320 of the stage; "
            "if there were fewer, run for longer)\n",
            report, ncu_endings.front());
}

}  // namespace carousel::supervisor
