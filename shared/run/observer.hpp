#pragma once
// A run as it is watched from outside: its control block, mapped, followed to another supervisor and into
// memory made anew. The tie is to one run, (folder, run id). The viewer, the page, `top` and `trace` watch by
// this. One thread an observer; what it has mapped may be used by others, as long as they hold it.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "run/liveness.hpp"
#include "telemetry/snapshot_events.hpp"

namespace carousel::run {

/// One control block of a run. A run that begins again has another one.
struct mapped_block {
    record run;                              ///< as it was when this was mapped
    std::shared_ptr<shm::segment> observed;  ///< read-only: all that is shown
    std::shared_ptr<shm::segment> attached;  ///< writable, for the lease words of a tap; null: only looked at
};

/// Something that happened to the run itself.
struct run_update {
    telemetry::event_kind kind = telemetry::event_kind::info;
    std::string text;
};

/// What one look has shown.
struct observation {
    liveness_report liveness;
    bool recreated =
        false;  ///< another block is mapped since: all that was made from the old one begins again
    std::vector<run_update> updates;  ///< since the last look
};

class observer {
public:
    enum class access : u8 { poll, take_leases };
    /// Throws shm_error: there is no block (yet), or none that fits this program.
    explicit observer(record r, access a = access::poll);

    /// Is there a supervisor, another one, none; has the run ended; has it another block? Between two blocks
    /// the old one stays mapped. A few times a second.
    [[nodiscard]] observation poll();
    /// Of the supervisor that leads it now.
    [[nodiscard]] const record& run() const noexcept { return run_; }
    [[nodiscard]] const shm::control_block& block() const noexcept { return mapped_->observed->block(); }
    /// Whoever uses a block beyond the next poll() holds it by this.
    [[nodiscard]] const std::shared_ptr<const mapped_block>& mapped() const noexcept { return mapped_; }
    /// One sentence on the tie, from the last look and the supervisor's last sign of life; "": all is well.
    [[nodiscard]] std::string notice(u64 now_ns, u64 heartbeat_ns) const;
    /// From now on it is only looked at: what the run's memory is mapped for writing is given back.
    void stop_leasing();

private:
    [[nodiscard]] bool follow();
    void report_supervisor_change(const liveness_report& now, i32 old_pid, std::vector<run_update>& updates);

    record run_;
    access access_;
    std::shared_ptr<const mapped_block> mapped_;
    std::optional<u32> alone_;  ///< its supervisor is gone, so many stages go on
};

}  // namespace carousel::run
