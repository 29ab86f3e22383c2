#pragma once
// A run that outlives its GPU: stages that are configured for a GPU run on the CPU instead. Their names are
// the only difference between the plan that is in use and the plan of the file, so the plan in use can be
// computed again: with other devices, memory kinds, depths, guards and turns. The identity of a run
// (compatibility.hpp) is that of the plan of the file.

#include <string>
#include <vector>

#include "core/described.hpp"
#include "core/json.hpp"
#include "supervisor/plan/device_choice.hpp"

namespace carousel::supervisor {

struct pipeline;
struct run_setup;

/// One change of devices during a run.
struct fallback_record {
    std::vector<std::string> stages;  ///< that moved
    std::string to, why;              ///< to: "cpu", "cuda:0"
    u64 at_ns = 0;                    ///< the error or the request
    u64 frame = 0;                    ///< the frame at which the run continued
    u64 next_frame_ns = 0;            ///< when a sink had the next frame; 0: not yet
    static constexpr field_rules rules{.missing_is_default = true};
};
BOOST_DESCRIBE_STRUCT(fallback_record, (), (stages, to, why, at_ns, frame, next_frame_ns))

/// The devices in use, as state.json has them for a second supervisor.
struct fallback_state {
    std::vector<std::string> stages;  ///< on the CPU instead of their GPU
    std::string why;
    u64 since_ns = 0;
    u64 fallbacks = 0, returns = 0;
    /// the depths of the plan in use; null: those of pipeline.json
    nlohmann::json depths;
    /// the GPUs of the plan, as the output of carousel-probe; null: not known
    nlohmann::json probe;
    std::vector<fallback_record> last;  ///< the newest hundred changes
    static constexpr field_rules rules{.missing_is_default = true};
    [[nodiscard]] bool contains(const std::string& stage) const noexcept;
};
BOOST_DESCRIBE_STRUCT(fallback_state, (), (stages, why, since_ns, fallbacks, returns, depths, probe, last))

/// The state that a dead supervisor has saved in that runtime directory; a default one if there is none.
[[nodiscard]] fallback_state saved_fallback(const std::string& directory);

/// True if two outputs of carousel-probe describe the same GPUs, whatever memory is free on them.
[[nodiscard]] bool same_gpus(nlohmann::json a, nlohmann::json b);
/// The offer with a placeholder for each GPU that the file names and that the machine lacks.
[[nodiscard]] machine_offer with_wanted_gpus(machine_offer machine, const pipeline& p);
/// The names of the stages whose GPU the machine lacks and that may run on the CPU instead; empty if another
/// stage lacks its GPU as well, because then the run can't start.
[[nodiscard]] std::vector<std::string> stages_without_gpu(const pipeline& p, const machine_offer& machine);
/// The names of all stages of the setup that may leave their GPU.
[[nodiscard]] std::vector<std::string> movable_stages(const run_setup& s);

/// The member "fallback" of the report; null: no stage can leave its GPU, and none did.
[[nodiscard]] nlohmann::json report_of(const fallback_state& f, const run_setup& s, u64 started_ns);
/// "moved to the CPU 2 times, to the GPU once", for the closing line; "": never.
[[nodiscard]] std::string moves_text(const fallback_state& f);

/// Gives the running setup the devices and everything that follows from them: memory kinds, depths, standbys.
void copy_device_plan(run_setup& running, const run_setup& next);

}  // namespace carousel::supervisor
