#pragma once
// The connection of one host's supervisor to the supervisors of the other hosts (hosts_extension.hpp). There
// are two implementations: coordinator (in `carousel run`, which connects to all others) and remote_partition
// (in `carousel host`, which accepts the coordinator's connection). Calls from the engine do not block,
// except where a comment states it.
//
// A host counts as lost if its connection is closed or silent for 5 s. The coordinator reconnects
// indefinitely, and the rings between the hosts wait (stages/hosts). These connections do not transfer
// frames.

#include <optional>
#include <string>
#include <vector>

#include "control/ps_message.hpp"
#include "core/json.hpp"
#include "os/console.hpp"
#include "os/event_loop.hpp"
#include "supervisor/engine/run_extension.hpp"

namespace carousel::supervisor {

/// The actions that other hosts may request from this host's engine.
class host_orders {
public:
    virtual ~host_orders() = default;
    virtual void log_line(const std::string& text) = 0;
    /// Delivers the frames in flight and then ends the run.
    virtual void end_the_run(const std::string& why) = 0;
    virtual void end_at_once(const std::string& why) = 0;
    /// Ends the stream that `stage` receives before frame `at`; has the same effect as if the stage's link
    /// had reported the end.
    virtual void end_the_stream(const std::string& stage, u64 at, const std::string& why) = 0;
    /// To be called if a partition of the pipeline has failed; the run then fails as well.
    virtual void host_has_failed(const std::string& host, const std::string& what, int code) = 0;
    /// Executes a request like one that arrives at the control socket (control/request_message.hpp), and
    /// returns its answer.
    virtual nlohmann::json carry_out_for(const nlohmann::json& request) = 0;
    /// To be called when the run is over on this host: serves requests and new connections at the control
    /// socket for up to `timeout_ms`.
    virtual void serve_requests(int timeout_ms) = 0;
    /// Called with the reply to a request that ask() has forwarded; `id`: the result of ask().
    virtual void answered(u64 id, const nlohmann::json& reply) = 0;
    /// Called with a log line from a stage of another host, or from that host's supervisor ("carousel").
    virtual void line_of(const std::string& host, const std::string& stage, i32 pid,
                         const std::string& line) = 0;
};

class other_hosts {
public:
    virtual ~other_hosts() = default;
    /// Called before any part of a new run is created: blocks until all hosts have compared their plans and
    /// begin. Throws config_error if plans differ or the token is wrong, and interrupted_early on a signal.
    /// `run_id`: id of this host's run.
    virtual void gather(console& out, const std::string& run_id) = 0;
    /// Returns the first frame of this host's rings. To be called after gather(); `own`: the frame given by
    /// --first.
    [[nodiscard]] virtual u64 first(u64 own) const { return own; }
    /// Connects the object to the engine: from now on it uses the engine's event loop, and passes on the
    /// actions that other hosts request. Also called after a takeover of the run.
    virtual void attend(event_loop& loop, host_orders& to, const std::string& run_id) = 0;
    virtual void leave() noexcept = 0;
    virtual void tick(u64 now) = 0;
    /// Adds the other hosts' data for `carousel ps`: rows named HOST/STAGE after this host's own rows, and
    /// the list of hosts.
    virtual void add_to(run::ps_answer& a) const = 0;
    /// Forwards a request to a host and returns the request's id, with which answered() is called later.
    /// Returns 0 and sets `why` if there is no such host, or if that host is lost.
    [[nodiscard]] virtual u64 ask(const std::string& host, const nlohmann::json& request,
                                  std::string& why) = 0;
    /// Called when the end of the run was requested on this host. Returns true if the engine must drain now.
    /// Returns false if the other hosts were notified and END will arrive with their frames.
    [[nodiscard]] virtual bool request_end(bool at_once) = 0;
    /// Called when all stages of this host have exited. Returns false while other hosts are still ending.
    /// `end`: frame at which this host's stream ended, if its partition is complete.
    [[nodiscard]] virtual bool may_leave(std::optional<u64> end, u64 now) = 0;
    /// The result of the other hosts: code() is the exit code of the first host that failed; reports()
    /// returns the hosts' reports by name.
    [[nodiscard]] virtual int code() const = 0;
    [[nodiscard]] virtual nlohmann::json reports() const = 0;
    /// Returns the lines to print at the end of the run.
    [[nodiscard]] virtual std::vector<std::string> closing_lines() const = 0;
    /// Sends the result of this partition to the coordinator. Blocks for as long as another incarnation of
    /// the coordinator may connect; a signal ends the wait earlier.
    virtual void report_outcome(int code, const nlohmann::json& report, const std::string& line) = 0;
};

}  // namespace carousel::supervisor
