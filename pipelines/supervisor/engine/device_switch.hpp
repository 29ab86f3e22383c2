#pragma once
// Moves stages from their GPU to the CPU and back, while the run continues. A move is a rebuild
// (run_rebuild.hpp) with other devices: every process ends, the run is planned again (device_fallback.hpp),
// and rings and assets get memory of the new kinds. What a rebuild guarantees holds for it as well.
//
//   why                                                          what moves
//   GPU errors, as fallback_policy.hpp decides                   the stage, or all stages that may
//   a stage fails for good, and its last error was of the GPU    the same
//   memory can't be allocated on the GPU during a rebuild        all stages that may
//   `carousel device`                                            the stages that it names
//
// A lost GPU may never end the work of its processes (state D). They are revoked and get SIGKILL, so they run
// no code of theirs any more, and the device work can write only into memory that they have mapped. All
// memory of the run is then replaced, so the run does not wait for their end: new memory needs no fence.
//
// The new choice is saved in state.json before the new block exists, so a supervisor that adopts the block
// has the plan that it was made from. One thread; nothing here blocks.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/ps_message.hpp"
#include "control/request_message.hpp"
#include "ring/topology.hpp"
#include "supervisor/plan/device_fallback.hpp"
#include "supervisor/policy/fallback_policy.hpp"

namespace carousel::supervisor {

class block_custodian;
class memory_store;
class run_phase;
class run_rebuild;
struct process_table;
struct run_facts;

/// What a move of stages changes outside of the engine.
struct device_target {
    run_setup* setup = nullptr;  ///< of the running pipeline; null: no stage can move
    /// Makes the setup for these devices. Does not block. Throws carousel::error.
    std::function<run_setup(const fallback_state&)> plan;
    /// Saves the identity of the run for these GPUs (pipeline.json). Throws shm_error.
    std::function<void(const fallback_state&)> keep_identity;
    fallback_state begins_with;  ///< of a fresh run
};

class device_switch {
public:
    device_switch(process_table& seats, memory_store& memory, block_custodian& block, run_phase& phase,
                  run_rebuild& rebuild, run_facts& facts, std::function<void()> save_state);
    /// To be called before the run begins. `fresh`: the run begins now; otherwise it was taken over.
    void set_target(device_target target, bool fresh);

    /// Called after each round of the loop. `may_act`: the run is not being taken over.
    void watch(u64 now, bool may_act);
    /// To be called if a stage has failed for good. Returns true if stages move to the CPU because of that.
    [[nodiscard]] bool moves_instead_of_failing();
    /// Handles `carousel device`.
    [[nodiscard]] run::verdict carry_out(const run::device_request& r);
    /// For `ps`; none: no stage can move.
    [[nodiscard]] std::optional<run::ps_fallback> shown(u64 now) const;

    // ---- for a rebuild
    /// True if the rebuild in progress has other devices than the block before.
    [[nodiscard]] bool is_due() const noexcept { return next_.has_value(); }
    /// To be called when every process has ended or is abandoned: plans again. Blocks keep their memory if
    /// nothing about them changes; the others have none. Throws carousel::error.
    void apply();
    /// Gives a rebuild that moves no stage other memory, because processes have not ended.
    void replace_memory();
    /// To be called if memory can't be allocated, or processes do not end. Returns true if all stages that
    /// may have moved to the CPU instead; then apply() was called.
    [[nodiscard]] bool fall_back(const std::string& why);
    /// True if the rebuild in progress has moved stages.
    [[nodiscard]] bool has_moved() const noexcept { return moved_; }
    /// To be called when the new block is in use. `first`: the frame at which the run continues.
    void done(u64 first);

private:
    [[nodiscard]] fallback_rule rule() const;
    [[nodiscard]] std::vector<std::string> names_of(const std::vector<u32>& stages) const;
    void leave(const fallback_decision& d);
    void begin(fallback_state next, const std::vector<std::string>& moved, const std::string& to,
               const std::string& text, u64 since_ns);
    void begin_record(const std::vector<std::string>& moved, const std::string& to, u64 since_ns,
                      fallback_state& next) const;

    process_table* seats_;
    memory_store* memory_;
    block_custodian* block_;
    run_phase* phase_;
    run_rebuild* rebuild_;
    run_facts* facts_;
    std::function<void()> save_state_;
    device_target target_;
    gpu_error_log errors_;
    std::optional<fallback_state> next_;    ///< the devices of the rebuild in progress
    std::optional<ring::plan> block_plan_;  ///< the plan of the block that the present rebuild replaces
    bool moved_ = false;                    ///< the present rebuild has moved stages
    std::optional<u64> delivered_at_;  ///< frames delivered when the last move was done; none: it is timed
};

}  // namespace carousel::supervisor
