#pragma once
// One private MPS domain: NVIDIA's control daemon (nvidia-cuda-mps-control) with sockets in a folder of the
// run's own, and the server that it starts for the first client. Never the machine's: the daemon is found by
// a mark in its environment (shm/marked_process.hpp) and by nothing else.
//
// Every function blocks, within the bound that its comment names: mps_domain.hpp calls them from a thread of
// its own. Measured on the real thing (driver 580): a daemon is up after 20 to 30 ms, terminate_client takes
// 14 ms, and hangs on a client that is stopped; killing server and daemon takes 10 to 45 ms.

#include <string>
#include <vector>

#include "core/types.hpp"
#include "shm/process_id.hpp"

namespace carousel::supervisor {

/// Environment that keeps a process out of every MPS domain, the machine's default one and the user's own
/// included: a folder in which no daemon listens.
inline constexpr const char* no_mps_folder = "/nonexistent-outside-mps";
/// Path of nvidia-cuda-mps-control in PATH; empty: there is none.
[[nodiscard]] std::string find_mps_control();

class mps_control {
public:
    /// `domain`: the folder of all daemons of the run; `part`: which of them this one is, "" where there is
    /// one. The sockets' folder, DOMAIN/PART, belongs to this daemon: start() makes it anew, end() removes
    /// it.
    explicit mps_control(std::string domain, const std::string& part = "")
        : domain_(std::move(domain)), folder_(part.empty() ? domain_ : domain_ + "/" + part) {}

    /// Starts the daemon; it listens when this returns. At most `timeout_ms`, and a second to take back what
    /// came too late. Throws device_error: no such program, refused (with its own words), too slow, or a
    /// folder whose path is too long for a socket.
    void start(u32 timeout_ms = 10'000) const;
    /// The daemon starts its server now; else the first client has it started, and waits. At most
    /// `timeout_ms`. Empty: it runs; else why not.
    [[nodiscard]] std::string start_server(u32 timeout_ms = 10'000) const;
    /// `quit`, then SIGKILL to what is still there: when it returns true no process of the domain is left,
    /// and none of its clients' work runs any more. At most 3 s more than `quit_ms`; quit_ms = 0: no quit (it
    /// waits for clients).
    bool end(u32 quit_ms) const noexcept;
    /// The daemon; pid 0: none lives.
    [[nodiscard]] shm::process_id daemon() const;
    /// The daemon answers, within `timeout_ms`.
    [[nodiscard]] bool is_responding(u32 timeout_ms = 2000) const;
    /// Ends all GPU work of a client and shuts it out; it is still to be killed. Empty: done, nothing of it
    /// runs or will run. Else why not. At most two times `timeout_ms`. An event that the client had recorded
    /// reads complete from then on, whatever became of its work: its words must have been aborted before.
    [[nodiscard]] std::string terminate_client(i32 pid, u32 timeout_ms = 2000) const;

    /// "NAME=VALUE" for a stage that is to be a client.
    [[nodiscard]] std::vector<std::string> client_environment() const;
    [[nodiscard]] const std::string& folder() const noexcept { return folder_; }

private:
    struct reply {
        bool ok = false;
        std::string text;  ///< what it said, or what went wrong
    };
    [[nodiscard]] reply query(const std::string& command, u32 timeout_ms) const;

    std::string domain_, folder_;
};

}  // namespace carousel::supervisor
