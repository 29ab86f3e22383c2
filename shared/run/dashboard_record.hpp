#pragma once
// The process that serves the web UI of `carousel run --http`, as it records itself in the run's folder. It
// outlives a supervisor that was killed, as the stages do. The next supervisor reads the record and keeps the
// process, or starts another one with the same address and token: open pages and scrapers stay valid.

#include <optional>
#include <string>
#include <vector>

#include "core/http_address.hpp"
#include "shm/process_id.hpp"

namespace carousel::run {

struct dashboard_record {
    shm::process_id process;
    std::string run_id;
    std::string asked;               ///< as given to --http; "0" for any port
    std::vector<std::string> hosts;  ///< as given to --http-host
    http_address address;            ///< where it listens
    std::string token;               ///< that actions need
};

/// Writes FOLDER/dashboard.json, mode 0600. Throws shm_error.
void write_dashboard_record(const std::string& folder, const dashboard_record& r);
/// Nothing: there is none, or none that can be read.
[[nodiscard]] std::optional<dashboard_record> read_dashboard_record(const std::string& folder);
/// Ends exactly that process: SIGTERM, after a second SIGKILL. Blocks for at most two seconds.
void end_dashboard(const shm::process_id& process) noexcept;
/// The address to open in a browser: "http://127.0.0.1:8080/?token=...".
[[nodiscard]] std::string dashboard_url(const http_address& address, const std::string& token);

}  // namespace carousel::run
