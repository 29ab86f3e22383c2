#pragma once
// The supervisors of the other hosts, as the engine of one of them sees them. Two forms: coordinator (of
// `carousel run`, which connects to all others) and remote_partition (of `carousel host`, which one connects
// to). Nothing the engine calls waits; what waits is said so.
//
// Who notices, who mends: a connection that says nothing for 5 s, or is closed, is a host that is lost; the
// near side tries it again for ever, and the rings between the hosts wait (stages/hosts). No frame goes over
// these connections.

#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "os/console.hpp"
#include "os/event_loop.hpp"
#include "run/ps_message.hpp"

namespace carousel::supervisor {

/// What the engine does when another host says so.
class host_orders {
public:
    virtual ~host_orders() = default;
    virtual void log_line(const std::string& text) = 0;
    /// What is begun is delivered, then the run ends.
    virtual void end_the_run(const std::string& why) = 0;
    virtual void end_at_once(const std::string& why) = 0;
    /// The stream that a stage receives ends before frame `at`, as its link would say.
    virtual void end_the_stream(const std::string& stage, u64 at, const std::string& why) = 0;
    /// A part of the pipeline has failed: so has the run.
    virtual void host_has_failed(const std::string& host, const std::string& what, int code) = 0;
    /// A request as at the control socket (run/request_message.hpp), and its answer.
    virtual nlohmann::json carry_out_for(const nlohmann::json& request) = 0;
    /// The run is over here: who asks at the control socket, or comes meanwhile, is answered.
    virtual void serve_requests(int timeout_ms) = 0;
    /// What became of an ask().
    virtual void answered(u64 id, const nlohmann::json& reply) = 0;
    /// A line that a stage of another host, or its supervisor ("carousel"), has said.
    virtual void line_of(const std::string& host, const std::string& stage, i32 pid,
                         const std::string& line) = 0;
};

class other_hosts {
public:
    virtual ~other_hosts() = default;
    /// Before anything of a fresh run is made: waits until all hosts have the same plan and begin. Throws
    /// config_error: a difference, a wrong token; interrupted_early: a signal. `run_id`: of this host's run.
    virtual void gather(console& out, const std::string& run_id) = 0;
    /// The frame that this host's rings begin with, once the hosts have gathered; `own`: by --first.
    [[nodiscard]] virtual u64 first(u64 own) const { return own; }
    /// From here on the engine's loop and orders. `running`: the run is one that was taken over.
    virtual void attend(event_loop& loop, host_orders& to, const std::string& run_id) = 0;
    virtual void leave() noexcept = 0;
    virtual void tick(u64 now) = 0;
    /// What they tell for `carousel ps`: rows named HOST/STAGE behind our own, and the hosts.
    virtual void add_to(run::ps_answer& a) const = 0;
    /// Hands a request on to a host; answered() comes with that number. 0: there is no such host, or it is
    /// lost
    /// (`why`).
    [[nodiscard]] virtual u64 ask(const std::string& host, const nlohmann::json& request,
                                  std::string& why) = 0;
    /// The run is to end, as somebody here has asked. True: the engine drains; false: the end comes with the
    /// frames of other hosts, who have been told.
    [[nodiscard]] virtual bool request_end(bool at_once) = 0;
    /// All stages of this host are gone. False: other hosts are still to end. `end`: where its stream ended,
    /// if this part is complete.
    [[nodiscard]] virtual bool may_leave(std::optional<u64> end, u64 now) = 0;
    /// How the other hosts have ended: code of the first that did not end well, and their reports by name.
    [[nodiscard]] virtual int code() const = 0;
    [[nodiscard]] virtual nlohmann::json reports() const = 0;
    /// Lines for the end of the run.
    [[nodiscard]] virtual std::vector<std::string> closing_lines() const = 0;
    /// What this part came to, for who has asked for it. Waits for the near host as long as another
    /// supervisor of it may come, or until a signal.
    virtual void report_outcome(int code, const nlohmann::json& report, const std::string& line) = 0;
};

/// A signal before anything was begun.
struct interrupted_early {
    int signal = 0;
};

}  // namespace carousel::supervisor
