#pragma once
// The part of a run's metrics that comes from files of its runtime directory: lost and repeated frames from
// the ledgers of its sinks, the sizes of recordings, and the settings of the stages. Only reads files. One
// thread per object.

#include <map>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "viewer/watch/stage_settings.hpp"

namespace carousel::telemetry {
struct snapshot;
}  // namespace carousel::telemetry

namespace carousel::viewer::web {

/// A sink, and the tail of its input ring: the sink has committed all frames below the tail.
struct sink_tail {
    std::string stage;
    u64 tail = 0;
};
[[nodiscard]] std::vector<sink_tail> sink_tails(const telemetry::snapshot& s);

struct run_files {
    struct delivery {
        u64 lost = 0, repeated = 0;
    };
    std::map<std::string, delivery> sinks;      ///< by stage; a sink without a readable ledger is missing
    std::map<std::string, u64> recorded_bytes;  ///< by stage: size of the stage's recording

    stage_settings settings;  ///< the keys of the pipeline file, by stage

    bool confirmed = false;  ///< two readings are complete, so `sinks` is, too

    /// Reads the files again. `block`: identifies the control block from which `tails` come. A tail of a
    /// block that has just been replaced does not fit the ledger, so a loss is reported only if two readings
    /// with the same block have found it. Never throws.
    void read(const std::string& runtime_directory, const std::vector<sink_tail>& tails, u64 block);

private:
    u64 block_ = 0;                           ///< the block of the last reading
    std::map<std::string, u64> unconfirmed_;  ///< by stage: the losses that the last reading found
};

}  // namespace carousel::viewer::web
