#pragma once
// One private MPS domain: NVIDIA's control daemon (nvidia-cuda-mps-control), whose sockets are in a folder of
// the run, and the server that the daemon starts for its first client. The run's domain is never the
// machine's default domain. The run's daemon is identified only by a mark in the daemon's environment
// (shm/process_id.hpp).
//
// Every function blocks, up to the limit in its comment: mps_domain.hpp calls them on a dedicated thread.
// Measured with driver 580: a daemon is ready after 20 to 30 ms; terminate_client takes 14 ms, and hangs on a
// client that is stopped; killing server and daemon takes 10 to 45 ms.

#include <string>
#include <vector>

#include "core/types.hpp"
#include "shm/process_id.hpp"

namespace carousel::supervisor {

/// Environment value that keeps a process out of every MPS domain, including the machine's default one and
/// the user's: a folder in which no daemon listens.
inline constexpr const char* no_mps_folder = "/nonexistent-outside-mps";
/// Searches PATH for nvidia-cuda-mps-control and returns its path; empty: it was not found.
[[nodiscard]] std::string find_mps_control();

class mps_control {
public:
    /// `domain`: folder of all daemons of the run; `part`: name of this daemon in that folder, "" if there is
    /// only one daemon. The folder of the sockets, DOMAIN/PART, belongs to this daemon: start() recreates it,
    /// end() removes it.
    explicit mps_control(std::string domain, const std::string& part = "")
        : domain_(std::move(domain)), folder_(part.empty() ? domain_ : domain_ + "/" + part) {}

    /// Starts the daemon; it is listening on return. Takes at most `timeout_ms`, and after a timeout 1 s more
    /// to clean up. Throws device_error if the program is missing, refuses (with the program's message) or is
    /// too slow, or if the folder's path is too long for a socket.
    void start(u32 timeout_ms = 10'000) const;
    struct started_server {
        std::string why;         ///< the reason why no server runs; "": it runs
        shm::process_id server;  ///< its process; the pid is 0 if that process is not known
    };
    /// Makes the daemon start its server now. Without this call the daemon starts its server for the first
    /// client, which then has to wait. Takes at most twice `timeout_ms`.
    [[nodiscard]] started_server start_server(u32 timeout_ms = 10'000) const;
    /// Sends `quit`, then SIGKILL to the remaining processes. Returns true if no process of the domain is
    /// left, and no work of its clients runs any more. Takes at most `quit_ms` + 3 s. If `quit_ms` is 0,
    /// `quit` is not sent, because it would wait for the clients.
    bool end(u32 quit_ms) const noexcept;
    /// Returns the daemon's process; its pid is 0 if the daemon is not alive.
    [[nodiscard]] shm::process_id daemon() const;
    /// Returns the server's process; its pid is 0 if no server runs, or the daemon does not answer in time.
    [[nodiscard]] shm::process_id server(u32 timeout_ms = 2000) const;
    /// True if the daemon answers within `timeout_ms`.
    [[nodiscard]] bool is_responding(u32 timeout_ms = 2000) const;
    /// Ends all GPU work of a client and disconnects it; its process must still be killed. Returns an empty
    /// string if no work of the client runs or will run, otherwise the reason why this is not certain. Takes
    /// at most 2 * `timeout_ms`. After this call, every event that the client has recorded is reported as
    /// complete, whether or not the work has finished. Therefore the client's words must be aborted before
    /// this call.
    [[nodiscard]] std::string terminate_client(i32 pid, u32 timeout_ms = 2000) const;

    /// Returns the environment variables ("NAME=VALUE") that make a stage a client. `generation`: the number
    /// of the domain, which the stage publishes with its events.
    [[nodiscard]] std::vector<std::string> client_environment(u32 generation) const;
    /// Returns the whole environment of the daemon and its server.
    [[nodiscard]] std::vector<std::string> daemon_environment() const;
    [[nodiscard]] const std::string& folder() const noexcept { return folder_; }

private:
    struct reply {
        bool ok = false;
        std::string text;  ///< output, or the error
    };
    [[nodiscard]] reply query(const std::string& command, u32 timeout_ms) const;

    std::string domain_, folder_;
};

}  // namespace carousel::supervisor
