#pragma once
// Records a run on this host for `carousel trace`: polls the timestamp rings that the run's processes write,
// the headers and the fill levels of its rings, and renews the lease under which processes write timestamps.
// Follows the run to another supervisor and into rebuilt memory. One thread.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/client.hpp"
#include "control/trace_message.hpp"
#include "core/types.hpp"
#include "frame/frame_format.hpp"
#include "shm/segment.hpp"
#include "telemetry/trace_file.hpp"
#include "telemetry/trace_reader.hpp"

namespace carousel::supervisor {

class tracer {
public:
    /// Starts the recording. Throws shm_error if no supervisor replies within wait_s plus two seconds, or if
    /// it refuses.
    tracer(const run::record& run, f64 wait_s);
    /// Records until `seconds` have elapsed (0: no limit), `frames` frames have passed (0: no limit), the run
    /// ends, or a signal arrives. At least one of the two parameters is not 0.
    void record(f64 seconds, u64 frames);
    /// Returns the clocks of the run's other hosts, by host.
    [[nodiscard]] const std::map<std::string, telemetry::trace_clock>& clocks() const noexcept {
        return clocks_;
    }
    /// Returns the trace as JSON. Call once, after record().
    [[nodiscard]] std::string text(telemetry::trace_summary& out);
    /// Returns the reason why the recording ended early; "" if it did not.
    [[nodiscard]] const std::string& ending() const noexcept { return ending_; }
    /// Returns the events of the run itself during the recording.
    [[nodiscard]] const std::vector<std::string>& updates() const noexcept { return updates_; }
    [[nodiscard]] f64 seconds() const noexcept { return static_cast<f64>(end_ns_ - begin_ns_) / 1e9; }
    /// Returns the number of timestamps that were overwritten before they were read.
    [[nodiscard]] u64 overwritten() const noexcept { return reader_->overwritten(); }

private:
    void ask(const run::record& run, f64 wait_s);
    void take(const run::record& run, run::trace_answer a);
    void poll(u64 now);
    void scan_headers();
    [[nodiscard]] const ring::frame_format* format_of(u32 link);
    void poll_run(u64 now);
    void request_clocks();
    [[nodiscard]] u64 least_tail() const noexcept;
    [[nodiscard]] bool through() const noexcept;

    std::optional<run::observer> run_;
    std::optional<shm::trace_segment> rings_;
    std::optional<telemetry::trace_reader> reader_;
    std::vector<telemetry::trace_note> notes_;
    std::vector<telemetry::trace_fill> fills_;
    telemetry::trace_facts facts_;
    std::map<std::string, telemetry::trace_clock> clocks_;
    /// formats by link; contains only the formats that were requested so far
    std::map<u32, std::optional<ring::frame_format>> formats_;
    std::string ending_, refused_;
    std::vector<std::string> updates_;
    u64 begin_ns_ = 0, end_ns_ = 0, requested_ns_ = 0, filled_ns_ = 0, run_polled_ns_ = 0, since_ = 0,
        first_ = 0;
    bool gone_ = false;
};

}  // namespace carousel::supervisor
