#pragma once
// The other hosts' parts of a trace: their supervisors record them, by this run's supervisor, and hand them
// over. For `carousel trace` on the host of `carousel run`.

#include <map>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "run/directory.hpp"
#include "telemetry/trace_file.hpp"
#include "telemetry/trace_join.hpp"

namespace carousel::supervisor {

class far_traces {
public:
    explicit far_traces(const run::record& run) : run_(run) {}
    /// Has all hosts of the run record, those but this one, and waits until they do, 3 s at most. What
    /// hinders one is told by problems().
    void begin(f64 wait_s);
    /// To be called again and again while they record: who asks no more for 10 s has them ended.
    void keep(u64 now);
    /// Ends and fetches all of hosts whose clocks are known; those that don't come are left out, with the
    /// reason among problems(). Bounded: a host that says nothing for 10 s is left out, and so are all at a
    /// signal.
    [[nodiscard]] std::vector<telemetry::named_trace> collect(
        const std::map<std::string, telemetry::trace_clock>& clocks);
    /// By host: why its part is missing.
    [[nodiscard]] const std::map<std::string, std::string>& problems() const noexcept { return problems_; }

private:
    [[nodiscard]] std::string fetch(const std::string& host, u64 id) const;

    run::record run_;
    std::map<std::string, u64> recording_;  ///< their numbers, by host
    std::map<std::string, std::string> problems_;
    u64 kept_ns_ = 0;
};

}  // namespace carousel::supervisor
