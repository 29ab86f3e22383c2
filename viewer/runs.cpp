#include "viewer/runs.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/errors.hpp"
#include "core/read_file.hpp"
#include "shm/segment.hpp"
#include "telemetry/run_life.hpp"

namespace carousel::viewer {
namespace fs = std::filesystem;

// As the supervisor does: sudo and containers leave the variable pointing at another user's folder, or at none.
std::string runs_folder() {
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    struct stat info {};
    if (runtime != nullptr && runtime[0] == '/' && ::stat(runtime, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid())
        return std::string(runtime) + "/carousel";
    return fmt::format("/tmp/carousel-{}", ::geteuid());
}

std::optional<run_info> read_run(const std::string& folder) {
    std::ifstream in(folder + "/run.json");
    if (!in) return std::nullopt;
    const nlohmann::json j = nlohmann::json::parse(in, nullptr, false);
    if (!j.is_object()) return std::nullopt;
    try {
        run_info r;
        r.folder = folder;
        r.supervisor = {j.at("pid").get<i32>(), j.at("start_time").get<u64>()};
        r.run_id = j.at("run_id");
        r.name = j.value("name", fs::path(folder).filename().string());
        r.file = j.value("file", "");
        r.pid_namespace = j.value("pid_namespace", "");
        r.boot_id = j.value("boot_id", "");
        return r;
    } catch (const nlohmann::json::exception&) {
        return std::nullopt;
    }
}

namespace {

std::string present_boot() {
    std::string text = read_file("/proc/sys/kernel/random/boot_id").value_or("");
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

bool goes_on_alone(const run_info& r) {
    try {
        return telemetry::living_stages(shm::segment::observe(r.run_id).block()) > 0;
    } catch (const error&) {
        return false;
    }
}

}  // namespace

bool lives(const run_info& r) {
    if (!r.boot_id.empty() && r.boot_id != present_boot()) return false;
    if (!r.pid_namespace.empty()) {
        std::error_code failed;
        const fs::path mine = fs::read_symlink("/proc/self/ns/pid", failed);
        if (!failed && mine.string() != r.pid_namespace) return fs::exists(r.folder + "/run.json", failed);
    }
    return shm::is_alive(r.supervisor);
}

std::vector<run_info> living_runs() {
    std::vector<run_info> out;
    std::error_code failed;
    for (fs::directory_iterator at(runs_folder(), failed), end; !failed && at != end; at.increment(failed)) {
        std::optional<run_info> r = read_run(at->path().string());
        if (r && (lives(*r) || goes_on_alone(*r))) out.push_back(std::move(*r));
    }
    std::sort(out.begin(), out.end(), [](const run_info& a, const run_info& b) { return a.name < b.name; });
    return out;
}

life_report look_after(run_info& r, const shm::control_block& block) {
    if (const std::optional<int> code = telemetry::end_of(block)) return {run_life::over, 0, fmt::format("exit code {}", *code)};
    std::optional<run_info> present = read_run(r.folder);
    const bool replaced = present && present->run_id != r.run_id;
    if (present && !replaced) r = std::move(*present);  // perhaps of another supervisor
    if (!replaced && lives(r)) return {};
    const u32 stages = telemetry::living_stages(block);
    // The supervisor may have said its last word, and gone, since we looked for it.
    if (const std::optional<int> code = telemetry::end_of(block)) return {run_life::over, 0, fmt::format("exit code {}", *code)};
    if (replaced) return {run_life::over, 0, "a new run has taken its place"};
    if (stages > 0) return {run_life::alone, stages, ""};
    return {run_life::over, 0, "its supervisor was killed, and none of its stages is left"};
}

std::string alone_text(u32 stages) {
    return fmt::format("supervisor gone, {} {} on", stages, stages == 1 ? "stage goes" : "stages go");
}

}  // namespace carousel::viewer
