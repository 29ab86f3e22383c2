#pragma once
// The other hosts' parts of a trace: their supervisors record these parts at the request of this run's
// supervisor, and send them. Used by `carousel trace` on the host of `carousel run`.
//
// Each host has its own thread, so that an unresponsive host delays neither the other hosts nor the recording
// on this host.

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/types.hpp"
#include "run/directory.hpp"
#include "telemetry/trace_file.hpp"

namespace carousel::supervisor {

class remote_traces {
public:
    explicit remote_traces(const run::record& run) : run_(run) {}
    ~remote_traces();
    remote_traces(const remote_traces&) = delete;
    remote_traces& operator=(const remote_traces&) = delete;

    /// Starts recording on all other hosts of the run and waits up to 3 s until they are recording. Throws
    /// config_error if a signal arrives.
    void begin(f64 wait_s);
    /// Stops the recordings and fetches all parts. A part that does not arrive, or whose host's clock is not
    /// in `clocks`, is omitted, and problems() has the reason. A host that responds has one minute to write
    /// its part; a signal abandons all parts that are not complete.
    [[nodiscard]] std::vector<telemetry::named_trace> collect(
        const std::map<std::string, telemetry::trace_clock>& clocks);
    /// Returns, for each host whose part is missing, the reason.
    [[nodiscard]] const std::map<std::string, std::string>& problems() const noexcept { return problems_; }

private:
    enum class state : u8 { record, fetch, cancel };
    struct part {
        std::string host, text, problem;  ///< the part's thread owns them until `done` is set
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
