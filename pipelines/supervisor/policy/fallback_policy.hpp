#pragma once
// Decides when stages leave their GPU: plain data in, a decision out. engine/device_switch.hpp acts.

#include <string>
#include <vector>

#include "core/types.hpp"
#include "supervisor/policy/state_table.hpp"

namespace carousel::supervisor {

enum class gpu_error_kind : u8 {
    none,
    fault,  ///< the work of the process failed: another process may succeed
    lost,   ///< the GPU is lost, or this process could not use it at all
};
/// Also for a fault that `carousel inject` has requested.
[[nodiscard]] gpu_error_kind gpu_error_of(const death& how) noexcept;

struct gpu_error {
    u32 stage = 0;
    gpu_error_kind kind = gpu_error_kind::none;
    u64 at_ns = 0;
    /// of the MPS domain, whose clients all see one fault; 0: the process had its own GPU context
    u32 domain = 0;
};

/// The stages by index; `alone`: its own errors move it without the others.
struct fallback_rule {
    u32 after = 3;
    u64 window_ns = 0;
    bool as_run = false;  ///< the errors of all stages move all stages that may leave their GPU
    std::vector<bool> may_leave, alone;
};

struct fallback_decision {
    std::vector<u32> stages;  ///< empty: none moves
    u32 stage = 0;            ///< stage of the last error
    u32 errors = 0;           ///< number of errors that led to the decision
    bool lost = false;
    u64 first_ns = 0, last_ns = 0;  ///< times of the first and the last of them
};

class gpu_error_log {
public:
    /// Adds an error. For the run, one fault of an MPS domain counts once; for a stage, one that it has seen.
    void add(const gpu_error& e);
    /// The decision at `now`; if stages move, the errors are forgotten.
    [[nodiscard]] fallback_decision judge(const fallback_rule& rule, u64 now);
    /// The decision for a stage that has failed for good; no stage moves unless its last error was of a GPU.
    [[nodiscard]] fallback_decision judge_failure(const fallback_rule& rule, u32 stage, u64 now);

private:
    [[nodiscard]] fallback_decision of(const fallback_rule& rule, u32 stage, bool whole_run) const;
    std::vector<gpu_error> errors_;
};

}  // namespace carousel::supervisor
