#pragma once
// Access to a run from outside: sends requests to its supervisor, and reads its control block.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/request_message.hpp"
#include "core/json.hpp"
#include "run/directory.hpp"
#include "run/liveness.hpp"
#include "telemetry/snapshot_events.hpp"

namespace carousel::run {

// A client of a run's supervisor sends one request over the supervisor's control socket (SOCK_SEQPACKET) and
// receives one reply, both in JSON. Every wait has a timeout. Used by the commands, the viewer and the
// dashboard. May be used by any process of the user, from any thread.

class client {
public:
    /// Error messages name the pipeline and its supervisor's pid.
    explicit client(const record& r);
    /// Connects to the process that listens at `socket_path`; error messages call this process "the
    /// supervisor".
    client(std::string socket_path, std::string run_id);

    /// Sends a request and returns the answer, which may be a refusal (request_message.hpp). The request
    /// carries the run's id, so that another run of the same name refuses it. Throws shm_error if no process
    /// listens (retried for wait_s seconds), if there is no reply within timeout_s seconds, or if the reply
    /// is not a JSON object. Throws config_error if the request exceeds shm::max_message.
    [[nodiscard]] nlohmann::json ask(const request& r, f64 wait_s = 0, f64 timeout_s = 10) const;

private:
    enum class failure : u8 { no_listener, unsent, silent, ended, unreadable };
    struct limits {
        f64 wait_s, timeout_s;
    };
    [[noreturn]] void fail(failure what, int error_number, limits l) const;

    std::string path_, run_id_;
    std::string supervisor_;  ///< "": unknown
};

// Observes a run from outside: maps its control block, and follows the run to another supervisor and into
// rebuilt memory. An observer is bound to one run, which is identified by (folder, run id). Used by the
// viewer, the dashboard, `top` and `trace`. One thread per observer; other threads may use a mapped block
// while they hold a reference to it.

/// One control block of a run. A run that restarts has another control block.
struct mapped_block {
    record run;                              ///< the run's record at the time when this block was mapped
    std::shared_ptr<shm::segment> observed;  ///< read-only; source of everything that is displayed
    std::shared_ptr<shm::segment> attached;  ///< writable, for a tap's lease words; null: none
};

/// An event that concerns the run itself.
struct run_update {
    telemetry::event_kind kind = telemetry::event_kind::info;
    std::string text;
};

/// Result of one poll.
struct observation {
    liveness_report liveness;
    bool recreated = false;  ///< another block was mapped, so everything that was derived from the old block
                             ///< must be restarted
    std::vector<run_update> updates;  ///< since the last poll
};

class observer {
public:
    enum class access : u8 { poll, take_leases };
    /// Throws shm_error if there is no control block (yet), or if it has another version; config_error if the
    /// run uses another clock.
    explicit observer(record r, access a = access::poll);

    /// Checks whether the run has a supervisor, has another supervisor than before, has ended, or has a
    /// rebuilt block. The old block stays mapped until the rebuilt one is found. To be called a few times per
    /// second.
    [[nodiscard]] observation poll();
    /// Record of the current supervisor.
    [[nodiscard]] const record& run() const noexcept { return run_; }
    [[nodiscard]] const shm::control_block& block() const noexcept { return mapped_->observed->block(); }
    /// To use the block after the next poll(), keep a copy of this pointer.
    [[nodiscard]] const std::shared_ptr<const mapped_block>& mapped() const noexcept { return mapped_; }
    /// Returns one sentence about the supervisor, based on the last poll and its last heartbeat; "": no
    /// problem.
    [[nodiscard]] std::string notice(u64 now_ns, u64 heartbeat_ns) const;
    /// Continues read-only: releases the writable mapping of the run's memory.
    void stop_leasing();

private:
    [[nodiscard]] bool follow();
    void report_supervisor_change(const liveness_report& now, i32 old_pid, std::vector<run_update>& updates);

    record run_;
    access access_;
    std::shared_ptr<const mapped_block> mapped_;
    /// if set, the supervisor has ended, and the value is the number of stages that continue
    std::optional<u32> alone_;
};

}  // namespace carousel::run
