#include "viewer/runs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace carousel::viewer {
namespace fs = std::filesystem;

std::string runs_folder() {
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    if (runtime != nullptr && *runtime != '\0') return std::string(runtime) + "/carousel";
    return fmt::format("/tmp/carousel-{}", ::getuid());
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
        return r;
    } catch (const nlohmann::json::exception&) {
        return std::nullopt;
    }
}

bool lives(const run_info& r) {
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
        if (r && lives(*r)) out.push_back(std::move(*r));
    }
    std::sort(out.begin(), out.end(), [](const run_info& a, const run_info& b) { return a.name < b.name; });
    return out;
}

}  // namespace carousel::viewer
