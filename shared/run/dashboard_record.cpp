#include "run/dashboard_record.hpp"

#include <fmt/format.h>

#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "shm/fd_socket.hpp"
#include "shm/runtime_folder.hpp"

namespace carousel::run {
namespace {

using nlohmann::json;
constexpr u64 end_patience_ns = ns_per_s;

std::string path_in(const std::string& folder) { return folder + "/dashboard.json"; }

}  // namespace

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
