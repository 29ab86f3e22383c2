#pragma once
// The connection of the web UI to a run: a thread that finds the run, reads it ten times per second and
// notices when its supervisor dies or is replaced, when it is rebuilt and when it ends. After its end, the
// next run of the same name is watched if `follows`; a run of another name only if a user chooses it. Actions
// name the run id that was shown, so none reaches a later run. The server reads the view under a lock that is
// held for fractions of a millisecond. Never throws: errors become a sentence in view::notice.

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ring/parameter_schema.hpp"
#include "run/observer.hpp"
#include "telemetry/snapshot_events.hpp"
#include "telemetry/snapshot_history.hpp"
#include "viewer/watch/control.hpp"
#include "viewer/watch/sampler.hpp"

namespace carousel::viewer::web {

enum class run_phase : u8 { waiting, running, ended };
[[nodiscard]] const char* name_of(run_phase p) noexcept;

/// The run as it was last read.
struct view {
    run_phase phase = run_phase::waiting;
    run::record run;
    std::vector<run::record> choices;  ///< while none is watched: the runs that could be
    std::string notice;                ///< one sentence on the connection; "" all is well
    telemetry::snapshot snap;
    telemetry::rates rates;
    telemetry::history past{0.25, 480};  ///< two minutes
    telemetry::event_tracker events;
    std::vector<seat_report> report;                      ///< the supervisor's own words, may be empty
    run_report whole;                                     ///< likewise; empty without a supervisor
    bool led = false;                                     ///< a supervisor leads the run
    std::vector<host_report> hosts;                       ///< the other hosts of the pipeline, as last told
    std::map<std::string, std::string> other_ring_names;  ///< control_client::other_ring_names
    /// of what lies in snap.parameters; none: no parameters, or not known yet
    ring::parameter_schema schema;
    /// The supervisor's report on a seat, or null.
    [[nodiscard]] const seat_report* report_of(u32 seat) const;
};

class watcher {
public:
    /// `name`: of the run; "": the only one that runs. The first that is found is watched to its end, after
    /// it the next one of the same name if `follows`.
    explicit watcher(std::string name, bool follows = true);
    ~watcher();
    watcher(const watcher&) = delete;
    watcher& operator=(const watcher&) = delete;

    /// Calls fn(const view&) while nothing changes; fn is quick.
    template <typename F>
    auto with_view(F&& fn) {
        const std::lock_guard lock(mutex_);
        return fn(static_cast<const view&>(view_));
    }
    /// Null while no run is watched.
    [[nodiscard]] std::shared_ptr<const run::mapped_block> attached();
    /// From now on the run of that name, by its user's word. False: no such run can be watched, or one is
    /// being watched.
    [[nodiscard]] bool choose(const std::string& name);
    /// A line into the event log.
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

    std::string name_;
    bool follows_;
    control_client control_;
    std::unique_ptr<sampler> sampler_;
    telemetry::rate_tracker tracker_;
    telemetry::timeline bars_;
    bool parameters_known_ = false;  ///< of the block that is attached
    u64 next_poll_ns_ = 0, next_check_ns_ = 0;
    std::mutex mutex_;  ///< all below
    std::condition_variable wake_;
    bool stop_ = false;
    view view_;
    std::optional<run::observer>
        observer_;  ///< of the run that is watched, or was: should it be taken over after all
    std::shared_ptr<const run::mapped_block> mapped_;  ///< null while none is watched
    std::thread thread_;
};

}  // namespace carousel::viewer::web
