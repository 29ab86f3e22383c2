#pragma once
// Optional parts of a run, plugged into the engine from outside: the other hosts of a pipeline, its web UI,
// its shared-memory space, reports to a service manager. The engine has no knowledge of the extensions: it
// calls the hooks below, and an extension acts on the run through run_access. Threading: only the engine's
// thread. Hooks do not block, except where a comment states it.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/ps_message.hpp"
#include "core/json.hpp"
#include "os/console.hpp"
#include "os/event_loop.hpp"
#include "supervisor/engine/run_facts.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

struct pipeline;

/// The run in brief, as `carousel ps` shows it.
struct run_summary {
    /// the short form, "waiting", and the text for display, "waiting: fragment is down"
    std::string state, state_text;
    /// all stages have started, so a frame can be made; or all frames have been delivered
    bool ready = false;
    bool ending = false;     ///< the end has begun
    bool reloading = false;  ///< a changed plan, or another version, is being taken over
    f64 frames_per_second = 0;
};

/// The operations of the run that an extension may use.
class run_access {
public:
    virtual ~run_access() = default;
    [[nodiscard]] virtual const run_setup& setup() const = 0;
    [[nodiscard]] virtual const std::string& run_id() const = 0;
    [[nodiscard]] virtual event_loop& loop() = 0;
    [[nodiscard]] virtual console& out() = 0;
    /// Width of the labels before log lines, in characters.
    [[nodiscard]] virtual std::size_t label_width() const = 0;
    /// True if this supervisor has taken the run over from a killed one.
    [[nodiscard]] virtual bool was_taken_over() const = 0;
    [[nodiscard]] virtual bool end_was_requested() const = 0;
    [[nodiscard]] virtual run_summary summary() const = 0;
    virtual void log_line(const std::string& text) = 0;
    /// Requests the end of the run, as a user on this host does; an extension may take the request
    /// (take_end_request).
    virtual void request_end(const std::string& why) = 0;
    /// Delivers the frames in flight and then ends the run. `why` is the cause, unless another cause is
    /// already recorded.
    virtual void drain(const std::string& why) = 0;
    virtual void end_at_once(const std::string& why) = 0;
    /// Ends the stream that `stage` receives before frame `at`; has the same effect as if the stage's link
    /// had reported the end.
    virtual void end_the_stream(const std::string& stage, u64 at, const std::string& why) = 0;
    /// To be called if something other than a stage has failed; the run then fails as well.
    virtual void fail(const std::string& label, const std::string& what, int code) = 0;
    /// Executes a request like one that arrives at the control socket (control/request_message.hpp), and
    /// returns its answer.
    virtual nlohmann::json carry_out(const nlohmann::json& request) = 0;
    /// Sends the reply to a request that an extension has taken (run_extension::take_request), if the client
    /// still waits.
    virtual void answer(u64 id, const nlohmann::json& reply) = 0;
    /// To be called when the run is over: serves requests and new connections at the control socket for up to
    /// `timeout_ms`.
    virtual void serve_requests(int timeout_ms) = 0;
    /// To be called after values of setup() have changed.
    virtual void plan_changed() = 0;
    /// Immediately saves the data that run_extension::save() returns.
    virtual void save_state() = 0;
};

/// The decision of an extension about a client's request.
struct request_route {
    bool taken = false;      ///< the extension answers it
    u64 id = 0;              ///< for run_access::answer()
    nlohmann::json refusal;  ///< null: the reply is sent later
};

class run_extension {
public:
    virtual ~run_extension() = default;

    // ---- before the run
    /// Called once, before any part of the run is started or allocated. Throws config_error.
    virtual void prepare(const pipeline&, console&) {}
    /// Called only for a fresh run, as the last step before anything is allocated. May block. Throws
    /// interrupted_early.
    virtual void agree(console&, const std::string& /*run_id*/) {}
    /// Returns the first frame of this run's rings; `own`: the first frame if there were no such extension.
    [[nodiscard]] virtual u64 first_frame(u64 own) const { return own; }

    // ---- the run
    /// The extension may act on the run from this call until close().
    virtual void attach(run_access&) {}
    /// Called after the stages have been started.
    virtual void begin() {}
    virtual void tick(u64 /*now*/) {}
    /// Called when the run ends, whether or not its processes have ended.
    virtual void leave() noexcept {}
    /// Called after all processes of the run have ended. Idempotent.
    virtual void close() noexcept {}

    // ---- the extension's state; a supervisor that takes the run over restores it before attach()
    virtual void save(nlohmann::json& /*run*/) const {}
    virtual void restore(saved_run& /*run*/) {}
    /// Returns a value that differs whenever the result of save() differs.
    [[nodiscard]] virtual u64 fingerprint() const noexcept { return 0; }

    // ---- requests, and the end
    /// True while the extension replaces parts of the run, or lets a successor continue it.
    [[nodiscard]] virtual bool is_reloading() const noexcept { return false; }
    /// Takes over a client's request if it is for another host.
    [[nodiscard]] virtual request_route take_request(const nlohmann::json& /*request*/) { return {}; }
    /// Called when the run is to end. Returns true if the extension itself will end the run later. `leaving`:
    /// every frame has been delivered; `may_wait`: the run has not begun to end, so the extension may delay
    /// the end.
    [[nodiscard]] virtual bool take_end_request(const std::string& /*why*/, bool /*leaving*/,
                                                bool /*may_wait*/) {
        return false;
    }
    /// True if a request to end the run still has an effect once all frames of this host have been delivered.
    [[nodiscard]] virtual bool outlasts_delivery() const noexcept { return false; }
    virtual void end_at_once() {}
    /// Called when all stages of this host have exited. `end`: frame at which this host's stream ended, if
    /// the stream is complete.
    [[nodiscard]] virtual bool may_leave(std::optional<u64> /*end*/, u64 /*now*/) { return true; }

    // ---- data that the extension adds to replies and to the report
    virtual void add_to(run::ps_answer&) const {}
    /// True if the extension needs the report even if the user has requested no report file.
    [[nodiscard]] virtual bool wants_report() const noexcept { return false; }
    virtual void add_to_report(nlohmann::json&) const {}
    /// Returns the exit code of the extension's part; it is used if the run was otherwise successful.
    [[nodiscard]] virtual int exit_code() const { return 0; }
    [[nodiscard]] virtual std::vector<std::string> closing_lines() const { return {}; }
    /// Called when the result of the run is known. May block.
    virtual void report_outcome(int /*code*/, const nlohmann::json& /*report*/, const std::string& /*line*/) {
    }
};

/// Thrown if a signal arrives before the run was started.
struct interrupted_early {
    int signal = 0;
};

/// All extensions of a run, in the order in which their hooks are called; the destructor closes them.
class run_extensions {
public:
    run_extensions() = default;
    explicit run_extensions(std::vector<std::shared_ptr<run_extension>> all) : all_(std::move(all)) {}
    ~run_extensions() { close(); }
    run_extensions(const run_extensions&) = delete;
    run_extensions& operator=(const run_extensions&) = delete;

    /// Calls `fn` for each extension.
    template <typename F>
    void each(F&& fn) const {
        for (const auto& e : all_) fn(*e);
    }
    /// Calls `fn` for one extension after the other until it returns true; returns false if it never does.
    template <typename F>
    [[nodiscard]] bool any(F&& fn) const {
        for (const auto& e : all_)
            if (fn(*e)) return true;
        return false;
    }
    void close() noexcept {
        for (const auto& e : all_) e->close();
    }

private:
    std::vector<std::shared_ptr<run_extension>> all_;
};

}  // namespace carousel::supervisor
