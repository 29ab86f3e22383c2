#pragma once
// Record of the process that serves the web UI of `carousel run --http`, written by that process into the
// run's folder. Like the stages, the process survives a killed supervisor. The next supervisor reads the
// record and keeps the process, or starts another one with the same address and token: open browser pages and
// scrapers continue to work.

#include <optional>
#include <string>
#include <vector>

#include "core/address.hpp"
#include "shm/process_id.hpp"

namespace carousel::run {

struct dashboard_record {
    shm::process_id process;
    std::string run_id;
    std::string asked;               ///< as given to --http; "0" for any port
    std::vector<std::string> hosts;  ///< as given to --http-host
    http_address address;            ///< that it listens on
    std::string token;               ///< required by actions
};

/// Writes FOLDER/dashboard.json, mode 0600. Throws shm_error.
void write_dashboard_record(const std::string& folder, const dashboard_record& r);
/// Empty if there is no readable record.
[[nodiscard]] std::optional<dashboard_record> read_dashboard_record(const std::string& folder);
/// Terminates exactly that process: Sends SIGTERM, and after 1 s SIGKILL. Blocks for at most 2 s.
void end_dashboard(const shm::process_id& process) noexcept;
/// The address to open in a browser: "http://127.0.0.1:8080/?token=...".
[[nodiscard]] std::string dashboard_url(const http_address& address, const std::string& token);

}  // namespace carousel::run
