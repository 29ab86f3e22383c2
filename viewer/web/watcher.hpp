#pragma once
// The dashboard's connection to a run. A thread finds the run, reads its state ten times per second, and
// detects when its supervisor dies or is replaced, when its memory is recreated, and when it ends. After the
// end of the run, the next run of the same name is watched if `follows` is set; a run of another name is
// watched only if a user chooses it. A request for an action contains the id of the run that was shown, so
// that it is never applied to a later run. The server reads the view under a lock that is held for fractions
// of a millisecond. Never throws: errors become a sentence in view::notice.

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "control/client.hpp"
#include "parameters/parameter_schema.hpp"
#include "telemetry/snapshot_events.hpp"
#include "telemetry/snapshot_series.hpp"
#include "viewer/watch/control.hpp"
#include "viewer/watch/sampler.hpp"
#include "viewer/web/run_files.hpp"

namespace carousel::viewer::web {

enum class run_phase : u8 { waiting, running, ended };
[[nodiscard]] const char* name_of(run_phase p) noexcept;

/// The state of the run when it was last read.
struct view {
    run_phase phase = run_phase::waiting;
    run::record run;
    std::vector<run::record> choices;  ///< the runs that a user can choose while no run is watched
    std::string notice;                ///< one sentence on the connection; "": no problem
    telemetry::snapshot snap;
    telemetry::rates rates;
    telemetry::history past{0.25, 480};  ///< two minutes
    telemetry::event_tracker events;
    std::vector<seat_report> report;        ///< the supervisor's report on each seat; may be empty
    std::optional<last_report> last_known;  ///< the same for the metrics; kept without a supervisor
    run_report whole;                ///< the supervisor's report on the run; empty without a supervisor
    run_files files;                 ///< what the files of the runtime directory show
    bool led = false;                ///< true if a supervisor controls the run
    std::vector<host_report> hosts;  ///< the other hosts of the pipeline, as last reported
    std::map<std::string, std::string> other_ring_names;  ///< control_client::other_ring_names
    /// schema of snap.parameters; empty if there are no parameters, or if they are not known yet
    ring::parameter_schema schema;
    /// The supervisor's report on a seat, or null.
    [[nodiscard]] const seat_report* report_of(u32 seat) const;
};

class watcher {
public:
    /// `name` is the run's name; "": the only running one. The first run that is found is watched until it
    /// ends; after that, the next run of the same name is watched if `follows` is set.
    explicit watcher(std::string name, bool follows = true);
    ~watcher();
    watcher(const watcher&) = delete;
    watcher& operator=(const watcher&) = delete;

    /// Calls fn(const view&) while holding the lock, so fn must be fast.
    template <typename F>
    auto with_view(F&& fn) {
        const std::lock_guard lock(mutex_);
        return fn(static_cast<const view&>(view_));
    }
    /// Null while no run is watched.
    [[nodiscard]] std::shared_ptr<const run::mapped_block> attached();
    /// Begins to watch the run of that name. Returns false if there is no such run, or if a run is being
    /// watched already.
    [[nodiscard]] bool choose(const std::string& name);
    /// Adds a line to the event log.
    void log_event(telemetry::event_kind kind, const std::string& text);

private:
    void loop();
    void tick(u64 now);
    void find_run();
    void attach(const run::record& r);
    void end(const std::string& how);
    void check_alive();
    void begin_with_block();
    void read();
    void explain_crash();
    void take_hosts();
    void learn_parameters();
    void read_files(std::unique_lock<std::mutex>& lock);

    std::string name_;
    bool follows_;
    control_client control_;
    std::unique_ptr<sampler> sampler_;
    telemetry::rate_tracker tracker_;
    telemetry::timeline bars_;
    bool parameters_known_ = false;  ///< the parameters of the attached block are known
    u64 next_poll_ns_ = 0, next_check_ns_ = 0, next_files_ns_ = 0;
    std::mutex mutex_;  ///< protects all members below
    std::condition_variable wake_;
    bool stop_ = false;
    view view_;
    std::optional<run::observer> observer_;  ///< observes the watched run; kept after the end of the run, in
                                             ///< case a supervisor takes the run over after all
    std::shared_ptr<const run::mapped_block> mapped_;  ///< null while no run is watched
    std::thread thread_;
};

}  // namespace carousel::viewer::web
