#pragma once
// The other hosts' parts of a trace: their supervisors record them, by this run's supervisor, and hand them
// over. For `carousel trace` on the host of `carousel run`.
//
// Each host has a thread, so that one that answers nobody holds up neither the others nor who records here.

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/types.hpp"
#include "run/directory.hpp"
#include "telemetry/trace_file.hpp"
#include "telemetry/trace_join.hpp"

namespace carousel::supervisor {

class remote_traces {
public:
    explicit remote_traces(const run::record& run) : run_(run) {}
    ~remote_traces();
    remote_traces(const remote_traces&) = delete;
    remote_traces& operator=(const remote_traces&) = delete;

    /// Has all hosts of the run record, those but this one, and waits until they do, 3 s at most. Throws
    /// config_error: a signal has come.
    void begin(f64 wait_s);
    /// Ends and fetches all. Those that don't come, or whose clock is not among `clocks`, are left out, with
    /// the reason among problems(). A host may take a minute to write its part, if it answers; at a signal
    /// all that are not there yet are left out.
    [[nodiscard]] std::vector<telemetry::named_trace> collect(
        const std::map<std::string, telemetry::trace_clock>& clocks);
    /// By host: why its part is missing.
    [[nodiscard]] const std::map<std::string, std::string>& problems() const noexcept { return problems_; }

private:
    enum class state : u8 { record, fetch, cancel };
    struct part {
        std::string host, text, problem;  ///< of its thread, until that is done
        std::atomic<bool> records{false}, done{false};
        std::thread thread;
    };
    void attend(part& p) const noexcept;
    void record_part(part& p) const;
    void rest(u64 ns) const;

    run::record run_;
    std::vector<std::unique_ptr<part>> parts_;
    std::map<std::string, std::string> problems_;
    std::atomic<state> state_{state::record};
};

}  // namespace carousel::supervisor
