#pragma once
// A fault that a user injects into one process (`carousel inject`, the viewer's buttons) to show the effect
// of its death on the others.
//
// The word lies in the stage's seat (control_block.hpp): {epoch:56, kind:8}. The supervisor stores it; the
// process whose epoch the word contains takes the word by one CAS to 0 between two frames, and performs the
// fault only after that. A process that dies before the CAS leaves a word that its successor ignores, because
// the epoch differs; a process that dies after the CAS leaves 0.

#include <array>
#include <string>
#include <string_view>

#include "core/types.hpp"

namespace carousel::shm {

enum class injected_fault : u8 {
    nothing = 0,
    hang,              ///< never returns from process(): detected after frame_timeout_ms
    gpu_fault,         ///< launches a kernel that writes to an illegal address; only for stages on a GPU
    exit,              ///< exits with code 3 in the middle of a frame, at once and without destructors
    abort,             ///< calls std::abort() in the middle of a frame
    scribble_input,    ///< writes into the stage's input, which belongs to the input's producer
    overrun_output,    ///< writes past the slot that the stage fills, where another frame might be
    scribble_control,  ///< writes into the control block directly, without the ring's functions
    exception,         ///< throws an exception in process(), as does a stage that cannot handle its frame
    gpu_lost,          ///< from now on every call to its GPU fails; only for stages on a GPU
};

/// All data about a fault in one place: options, completion, checks, buttons and messages use this table.
struct injected_fault_row {
    injected_fault kind;
    const char* name;     ///< name of the fault, as the user gives it
    bool needs_gpu;       ///< not available for stages on the CPU
    bool needs_deadline;  ///< only frame_timeout_ms ends it
    bool needs_input;     ///< the fault is refused for sources; it is also refused if the stage's inputs are
                          ///< writable, because the fault would then harm other stages
    bool needs_output;    ///< the fault is refused for sinks; it is also refused if no gap follows a slot,
                          ///< because the fault would then harm other stages
    const char* remark;   ///< text after the name in the list of options; may be empty
    char key;             ///< character on the fault's button in the viewer; Ctrl with this character is its
                          ///< key
    const char* title;    ///< of that button
    const char* help;
};
inline constexpr std::array<injected_fault_row, 9> injected_faults{{
    {injected_fault::hang, "hang", false, true, false, false, "detected after frame_timeout_ms", 'H', "hang",
     "the stage never finishes its next frame; it is replaced after frame_timeout_ms"},
    {injected_fault::gpu_fault, "gpu-fault", true, false, false, false, "", 'G', "GPU fault",
     "an illegal address in a kernel of the stage; only for stages on a GPU"},
    {injected_fault::exit, "exit", false, false, false, false, "", 'X', "exit",
     "the stage ends itself during its next frame"},
    {injected_fault::abort, "abort", false, false, false, false, "", 'A', "abort",
     "the stage calls abort() during its next frame"},
    {injected_fault::scribble_input, "scribble-input", false, false, true, false, "a wild write to its input",
     'I', "scribble", "the stage writes to its read-only input"},
    {injected_fault::overrun_output, "overrun-output", false, false, false, true,
     "a write beyond its output slot", 'O', "overrun", "the stage writes beyond its output slot"},
    {injected_fault::scribble_control, "scribble-control", false, false, false, false,
     "a wild write to the control block", 'B', "scribble block",
     "the stage writes to the control block, bypassing the ring's functions"},
    {injected_fault::exception, "throw", false, false, false, false, "an exception out of process()", 'J',
     "throw", "the stage's code throws an exception during its next frame"},
    {injected_fault::gpu_lost, "gpu-lost", true, false, false, false, "its GPU is gone for the process", 'T',
     "GPU lost", "every call of the stage to its GPU fails from its next frame on; only for stages on a GPU"},
}};

/// Returns null for `nothing`.
[[nodiscard]] constexpr const injected_fault_row* row_of(injected_fault kind) noexcept {
    for (const injected_fault_row& row : injected_faults)
        if (row.kind == kind) return &row;
    return nullptr;
}
[[nodiscard]] constexpr std::string_view name_of(injected_fault kind) noexcept {
    const injected_fault_row* row = row_of(kind);
    return row == nullptr ? "nothing" : row->name;
}
/// Returns `nothing` if there is no fault with that name.
[[nodiscard]] constexpr injected_fault fault_named(std::string_view name) noexcept {
    for (const injected_fault_row& row : injected_faults)
        if (row.name == name) return row.kind;
    return injected_fault::nothing;
}
/// Returns the names, "hang, gpu-fault, exit, ... or overrun-output"; `last` is the separator before the last
/// name.
[[nodiscard]] inline std::string fault_names(std::string_view last) {
    std::string out;
    for (const injected_fault_row& row : injected_faults)
        out.append(&row == injected_faults.data()    ? ""
                   : &row == &injected_faults.back() ? last
                                                     : ", ")
            .append(row.name);
    return out;
}

[[nodiscard]] constexpr u64 fault_word(injected_fault kind, u32 epoch) noexcept {
    return u64{epoch} << 8U | static_cast<u64>(kind);
}
/// Returns the fault that the word requests from the incarnation with this epoch.
[[nodiscard]] constexpr injected_fault fault_for(u64 raw, u32 epoch) noexcept {
    const injected_fault_row* row = row_of(static_cast<injected_fault>(raw & 0xFFU));
    return raw >> 8U == epoch && row != nullptr ? row->kind : injected_fault::nothing;
}

}  // namespace carousel::shm
