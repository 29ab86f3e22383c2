#pragma once
// A fault that a user asks one process for (`carousel inject`, the viewer's buttons), to see what its death
// does to the others.
//
// The word lies in the stage's seat (control_block.hpp): {epoch:56, kind:8}. The supervisor stores it; the
// process whose epoch it bears takes it by one CAS to 0 between two frames, and only then does itself the
// harm. Who dies before the CAS leaves a word that no other life obeys, since its epoch is another; who dies
// behind it leaves none.

#include <array>
#include <string>
#include <string_view>

#include "core/types.hpp"

namespace carousel::shm {

enum class injected_fault : u8 {
    nothing = 0,
    hang,              ///< never returns from process(): found at frame_timeout_ms
    gpu_fault,         ///< a kernel that writes to an illegal address; stages on a GPU only
    exit,              ///< exit code 3 in the middle of a frame, at once and without destructors
    abort,             ///< std::abort() in the middle of a frame
    scribble_input,    ///< writes into its input, which belongs to its producer
    overrun_output,    ///< writes beyond the slot that it fills, where another frame might lie
    scribble_control,  ///< writes into the control block, with its own code
};

/// All that is said about a fault, in one place: options, completion, checks, buttons and messages come from
/// here.
struct injected_fault_row {
    injected_fault kind;
    const char* name;     ///< as it is asked for
    bool needs_gpu;       ///< stages on the CPU can't have it
    bool needs_deadline;  ///< nothing but frame_timeout_ms ends it
    bool needs_input;     ///< sources can't have it, nor who could do harm by it
    bool needs_output;    ///< sinks can't have it, nor who could do harm by it
    const char* remark;   ///< behind the name where options are listed; ""
    char letter;          ///< of its button in the viewer, Ctrl with it is its key
    const char* title;    ///< of that button
    const char* help;
};
inline constexpr std::array<injected_fault_row, 7> injected_faults{{
    {injected_fault::hang, "hang", false, true, false, false, "found at frame_timeout_ms", 'H', "hang",
     "the chosen stage never ends its next frame: found at frame_timeout_ms, and replaced"},
    {injected_fault::gpu_fault, "gpu-fault", true, false, false, false, "", 'G', "GPU fault",
     "an illegal address in a kernel of the chosen stage; stages on a GPU only"},
    {injected_fault::exit, "exit", false, false, false, false, "", 'X', "exit",
     "the chosen stage ends itself in the middle of its next frame"},
    {injected_fault::abort, "abort", false, false, false, false, "", 'A', "abort",
     "the chosen stage calls abort() in the middle of its next frame"},
    {injected_fault::scribble_input, "scribble-input", false, false, true, false,
     "a stray write to its input", 'I', "scribble",
     "the chosen stage writes into its input, which it may only read"},
    {injected_fault::overrun_output, "overrun-output", false, false, false, true,
     "a write beyond its output slot", 'O', "overrun",
     "the chosen stage writes beyond the slot that it fills"},
    {injected_fault::scribble_control, "scribble-control", false, false, false, false,
     "a stray write into the words of the run", 'B', "scribble block",
     "the chosen stage writes into the control block, past the ring's functions"},
}};

/// Null: `nothing`.
[[nodiscard]] constexpr const injected_fault_row* row_of(injected_fault kind) noexcept {
    for (const injected_fault_row& row : injected_faults)
        if (row.kind == kind) return &row;
    return nullptr;
}
[[nodiscard]] constexpr std::string_view name_of(injected_fault kind) noexcept {
    const injected_fault_row* row = row_of(kind);
    return row == nullptr ? "nothing" : row->name;
}
/// nothing: no such name.
[[nodiscard]] constexpr injected_fault fault_named(std::string_view name) noexcept {
    for (const injected_fault_row& row : injected_faults)
        if (row.name == name) return row.kind;
    return injected_fault::nothing;
}
/// Their names, "hang, gpu-fault, exit, ... or overrun-output": `last` stands before the last one.
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
/// What the word asks the life `epoch` for.
[[nodiscard]] constexpr injected_fault fault_for(u64 raw, u32 epoch) noexcept {
    const injected_fault_row* row = row_of(static_cast<injected_fault>(raw & 0xFFU));
    return raw >> 8U == epoch && row != nullptr ? row->kind : injected_fault::nothing;
}

}  // namespace carousel::shm
