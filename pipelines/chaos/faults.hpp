#pragma once
// The faults of `carousel chaos` and their order: determined by the seed alone, on every machine.

#include <array>
#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "chaos/subject.hpp"
#include "core/types.hpp"
#include "shm/injected_fault.hpp"

namespace carousel::supervisor::chaos {

enum class fault : u8 {
    kill,   ///< SIGKILL, from outside
    term,   ///< SIGTERM, from outside
    stop,   ///< SIGSTOP, sent from outside: detected after frame_timeout_ms
    all,    ///< SIGKILL, sent to all stages at once
    abort,  ///< std::abort() by the stage itself, in the middle of a frame (`carousel inject`)
    exit,
    hang,              ///< never returns from processing a frame: detected after frame_timeout_ms
    gpu_fault,         ///< a fault of the GPU; only for stages on a GPU
    supervisor,        ///< SIGKILL, sent to the supervisor; then the command is executed again, and takes the
                       ///< run over
    scribble_input,    ///< a wild write to the stage's input; only for stages with a guarded input
    overrun_output,    ///< a write beyond the stage's output slot; only for stages with a guarded output
    scribble_control,  ///< a wild write into the control block; only for guarded stages
    exception,         ///< an exception that the stage's own code throws
    gpu_lost,          ///< the GPU of a stage is lost; only for stages on a GPU
};
struct fault_row {
    fault kind;
    std::string_view name;
    u64 weight;                                                   ///< relative frequency
    int signal = 0;                                               ///< the signal that is sent from outside;
                                                                  ///< 0: none
    shm::injected_fault injected = shm::injected_fault::nothing;  ///< executed by the stage itself
};
[[nodiscard]] constexpr fault_row injected_row(fault kind, shm::injected_fault injected,
                                               u64 weight) noexcept {
    return {kind, shm::name_of(injected), weight, 0, injected};
}
/// The rows are in the order of `fault`. A seed yields the same plan only as long as the order and the
/// weights of the rows are unchanged.
inline constexpr std::array<fault_row, 14> fault_table{{
    {fault::kill, "kill", 10, SIGKILL},
    {fault::term, "term", 2, SIGTERM},
    {fault::stop, "stop", 2, SIGSTOP},
    {fault::all, "all", 1, SIGKILL},
    injected_row(fault::abort, shm::injected_fault::abort, 4),
    injected_row(fault::exit, shm::injected_fault::exit, 3),
    injected_row(fault::hang, shm::injected_fault::hang, 2),
    injected_row(fault::gpu_fault, shm::injected_fault::gpu_fault, 3),
    {fault::supervisor, "supervisor", 1},
    injected_row(fault::scribble_input, shm::injected_fault::scribble_input, 3),
    injected_row(fault::overrun_output, shm::injected_fault::overrun_output, 3),
    injected_row(fault::scribble_control, shm::injected_fault::scribble_control, 3),
    injected_row(fault::exception, shm::injected_fault::exception, 3),
    injected_row(fault::gpu_lost, shm::injected_fault::gpu_lost, 1),
}};
[[nodiscard]] constexpr const fault_row& row_of(fault f) noexcept {
    return fault_table[static_cast<std::size_t>(f)];
}
[[nodiscard]] constexpr std::string_view name_of(fault f) noexcept { return row_of(f).name; }
[[nodiscard]] constexpr bool needs_gpu(fault f) noexcept {
    const shm::injected_fault_row* row = shm::row_of(row_of(f).injected);
    return row != nullptr && row->needs_gpu;
}
[[nodiscard]] constexpr bool needs_input(fault f) noexcept {
    const shm::injected_fault_row* row = shm::row_of(row_of(f).injected);
    return row != nullptr && row->needs_input;
}
[[nodiscard]] constexpr bool needs_output(fault f) noexcept {
    const shm::injected_fault_row* row = shm::row_of(row_of(f).injected);
    return row != nullptr && row->needs_output;
}
/// Returns all names, in the order of `fault`.
[[nodiscard]] std::vector<std::string> fault_names();

/// Parses a list such as "kill,stop,hang"; a repeated kind is returned once. Throws config_error for an
/// unknown kind or an empty text.
[[nodiscard]] std::vector<fault> faults_from(const std::string& text);

/// One fault of the plan. The fault's victim is seat `victim_index` modulo the number of seats, in the order
/// of the pipeline file.
struct step {
    u64 number = 0;  ///< from 0
    fault kind = fault::kill;
    f64 wait_s = 0;  ///< delay before the fault; exponentially distributed with the requested mean
    u64 victim_index = 0;
    f64 supervisor_gap_s = 0;  ///< time during which the run has no supervisor, 0 .. 0.4
};

class plan {
public:
    /// The kinds of fault occur in proportion to their weights: kills occur most often, kills of the
    /// supervisor rarely. `mean_wait_s` 0: no waits.
    plan(u64 seed, std::vector<fault> kinds, f64 mean_wait_s);
    [[nodiscard]] step next();

private:
    [[nodiscard]] u64 random() noexcept;
    [[nodiscard]] f64 fraction() noexcept;  ///< 0 <= x < 1
    u64 state_, number_ = 0;
    std::vector<fault> kinds_;
    u64 weights_ = 0;
    f64 mean_wait_s_;
};

// The faults that the stages of a run can take.

/// Returns whether that seat can take the fault. A seat can take a wild write only if a guard covers the
/// target of the write.
[[nodiscard]] bool can_take(const victim& v, fault f) noexcept;

/// Returns `requested`; if `requested` is empty, returns all faults that some seat can take. Throws
/// config_error if no seat can take a requested fault. `file`: the pipeline file.
[[nodiscard]] std::vector<fault> choose_kinds(const std::vector<fault>& requested,
                                              const std::vector<victim>& seats, const std::string& file);

}  // namespace carousel::supervisor::chaos
