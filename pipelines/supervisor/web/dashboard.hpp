#pragma once
// The web UI of `carousel run --http`: the program carousel-web, as a separate process. The web UI is not a
// part of the run: if it dies, hangs or never starts, the pipeline continues, and the log reports the
// failure. The web UI outlives a supervisor that is killed, for as long as the stages run, and the next
// supervisor keeps it (run/directory.hpp). One thread; the destructor and start() wait, for two
// seconds at most.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "os/event_loop.hpp"
#include "os/log_pipe.hpp"
#include "os/spawn.hpp"
#include "run/directory.hpp"
#include "supervisor/engine/run_extension.hpp"
#include "supervisor/policy/early_ends.hpp"

namespace carousel::supervisor {

/// Returns the path of carousel-web, which is in the folder of this program. If carousel-web was not built,
/// throws a config_error that names the missing package.
[[nodiscard]] std::string dashboard_program();

struct dashboard_plan {
    std::string address;  ///< the value of --http; "": the web UI that already runs keeps its address
    std::vector<std::string> hosts;    ///< as given to --http-host
    std::string name, run_id, folder;  ///< of the run
};

class dashboard {
public:
    /// `width`: width of the labels before log lines, in characters.
    dashboard(event_loop& loop, console& out, dashboard_plan plan, std::size_t width);
    /// Ends the web UI process.
    ~dashboard();
    dashboard(const dashboard&) = delete;
    dashboard& operator=(const dashboard&) = delete;

    /// Keeps the web UI that an earlier supervisor of this run has started, if its address and hosts are as
    /// planned; otherwise starts one. Never throws: a failure to start is logged.
    void start() noexcept;
    /// Restarts a web UI that has died: 1 s after its death, unless it dies often (early_ends.hpp).
    void tick(u64 now) noexcept;

private:
    [[nodiscard]] bool keep_running(const run::dashboard_record& found);
    void spawn_dashboard();
    void watch();
    void ended();

    event_loop& loop_;
    dashboard_plan plan_;
    std::string token_;
    std::string last_address_;  ///< the last address of the web UI; it is tried first if the plan permits any
                                ///< port
    log_sink log_;
    log_pipe pipe_;
    spawned process_;
    bool tried_last_ = false;  ///< the present web UI process was started with last_address_
    u64 due_ns_ = 0;           ///< 0: nothing to start
    early_ends early_ends_;
};

/// The web UI of a run, as an extension.
class web_extension final : public run_extension {
public:
    /// `address` and `hosts`: see dashboard_plan.
    web_extension(std::string address, std::vector<std::string> hosts)
        : address_(std::move(address)), hosts_(std::move(hosts)) {}
    void attach(run_access& run) override;
    void begin() override;
    void tick(u64 now) override;
    void close() noexcept override { dashboard_.reset(); }

private:
    std::string address_;
    std::vector<std::string> hosts_;
    std::unique_ptr<dashboard> dashboard_;  ///< null: the run has no web UI
};

}  // namespace carousel::supervisor
