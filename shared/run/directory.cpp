#include "run/directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "shm/fd_socket.hpp"
#include "shm/runtime_folder.hpp"

namespace carousel::run {
namespace {

namespace fs = std::filesystem;

std::string pid_namespace() {
    std::error_code failed;
    return fs::read_symlink("/proc/self/ns/pid", failed).string();
}

std::string boot_id() {
    std::ifstream in("/proc/sys/kernel/random/boot_id");
    std::string text;
    std::getline(in, text);
    return text;
}

using nlohmann::json;
constexpr u64 end_patience_ns = ns_per_s;

std::string path_in(const std::string& folder) { return folder + "/dashboard.json"; }

}  // namespace

std::string runs_folder() { return shm::runtime_folder("carousel"); }

std::string run_folder(const std::string& name) { return runs_folder() + "/" + name; }

std::string control_socket(const std::string& folder) { return folder + "/control.sock"; }

std::string port_lock(const std::string& folder, u32 seat, u32 epoch) {
    return fmt::format("{}/port-{}-{}.lock", folder, seat, epoch);
}

std::string record::socket() const { return control_socket(folder); }

std::string make_run_folder(const std::string& name) {
    shm::make_private_folder(runs_folder());
    std::string folder = run_folder(name);
    shm::make_private_folder(folder);
    return folder;
}

void write_record(const std::string& folder, record r) {
    const clock_identity clock = own_clock();
    nlohmann::json text = {{"pid", r.supervisor.pid}, {"start_time", r.supervisor.start_time},
                           {"run_id", r.run_id},      {"name", r.name},
                           {"file", r.file},          {"pid_namespace", pid_namespace()},
                           {"boot_id", boot_id()},    {"time_namespace", clock.time_namespace}};
    if (clock.offset_ns) text["monotonic_offset_ns"] = *clock.offset_ns;
    shm::write_whole_file(folder + "/run.json",
                          text.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::optional<record> read_record(const std::string& folder) {
    const std::optional<std::string> text = read_file(folder + "/run.json");
    if (!text) return std::nullopt;
    try {
        const nlohmann::json j = parse_json(*text, json_channel::document);
        record r;
        r.folder = folder;
        r.supervisor = {j.at("pid").get<i32>(), j.at("start_time").get<u64>()};
        r.run_id = j.at("run_id").get<std::string>();
        r.name = j.at("name").get<std::string>();
        r.file = j.value("file", "");
        r.pid_namespace = j.value("pid_namespace", "");
        r.boot_id = j.value("boot_id", "");
        r.clock.time_namespace = j.value("time_namespace", "");
        if (j.contains("monotonic_offset_ns")) r.clock.offset_ns = j.at("monotonic_offset_ns").get<i64>();
        return r;
    } catch (const nlohmann::json::exception&) {
        return std::nullopt;
    }
}

bool is_of_here(const record& r) {
    const auto same = [](const std::string& recorded, const std::string& own) {
        return recorded.empty() || recorded == own;
    };
    return same(r.boot_id, boot_id()) && same(r.pid_namespace, pid_namespace()) &&
           same(r.clock.time_namespace, time_namespace());
}

bool is_alive(const record& r, bool lock_is_ours) {
    if (is_of_here(r)) return shm::is_alive(r.supervisor);
    return !lock_is_ours && (r.folder.empty() || shm::has_leader(r.folder));
}

std::vector<record> recorded_runs() {
    std::vector<record> runs;
    std::error_code failed;
    for (fs::directory_iterator at(runs_folder(), failed), end; !failed && at != end; at.increment(failed)) {
        std::optional<record> r = read_record(at->path().string());
        if (!r) continue;
        r->name = at->path().filename().string();  // the socket is in this folder, whatever name the record
                                                   // contains
        runs.push_back(std::move(*r));
    }
    std::sort(runs.begin(), runs.end(), [](const record& a, const record& b) { return a.name < b.name; });
    return runs;
}

std::vector<record> living_runs() {
    std::vector<record> runs = recorded_runs();
    std::erase_if(runs, [](const record& r) { return !is_alive(r); });
    return runs;
}

void write_dashboard_record(const std::string& folder, const dashboard_record& r) {
    const json text = {{"pid", r.process.pid}, {"start_time", r.process.start_time},
                       {"run_id", r.run_id},   {"asked", r.asked},
                       {"hosts", r.hosts},     {"address", r.address.text()},
                       {"token", r.token}};
    shm::write_whole_file(path_in(folder), text.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

std::optional<dashboard_record> read_dashboard_record(const std::string& folder) {
    const std::optional<std::string> text = read_file(path_in(folder));
    if (!text) return std::nullopt;
    try {
        const json j = parse_json(*text, json_channel::document);
        dashboard_record r;
        r.process = {j.at("pid").get<i32>(), j.at("start_time").get<u64>()};
        r.run_id = j.at("run_id").get<std::string>();
        r.asked = j.at("asked").get<std::string>();
        r.hosts = j.at("hosts").get<std::vector<std::string>>();
        r.address = parse_http_address(j.at("address").get<std::string>());
        r.token = j.at("token").get<std::string>();
        return r;
    } catch (const json::exception&) {
        return std::nullopt;
    } catch (const error&) {
        return std::nullopt;
    }
}

void end_dashboard(const shm::process_id& process) noexcept {
    const shm::unique_fd fd(shm::open_pidfd(process));
    if (!fd) return;
    for (const int signal : {SIGTERM, SIGKILL}) {
        (void)shm::signal_pidfd(fd.get(), signal);
        if (events_of(fd.get(), POLLIN, now_ns() + end_patience_ns) != 0) return;
    }
}

std::string dashboard_url(const http_address& address, const std::string& token) {
    http_address reached = address;
    if (reached.host == "0.0.0.0") reached.host = "127.0.0.1";
    if (reached.host == "::") reached.host = "::1";
    return fmt::format("http://{}/?token={}", reached.text(), token);
}

}  // namespace carousel::run
