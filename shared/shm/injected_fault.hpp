#pragma once
// A fault that a user asks one process for (`carousel inject`, the viewer's buttons), to see what its death does to the others.
//
// The word lies in the stage's seat (control_block.hpp): {epoch:56, kind:8}. The supervisor stores it; the process whose epoch it
// bears takes it by one CAS to 0 between two frames, and only then does itself the harm. Who dies before the CAS leaves a word
// that no other life obeys, since its epoch is another; who dies behind it leaves none.

#include <array>
#include <string_view>

#include "core/types.hpp"

namespace carousel::shm {

enum class injected_fault : u8 {
    nothing = 0,
    hang,       ///< never returns from process(): found at frame_timeout_ms
    gpu_fault,  ///< a kernel that writes to an illegal address; stages on a GPU only
    exit,       ///< exit code 3 in the middle of a frame, at once and without destructors
    abort,      ///< std::abort() in the middle of a frame
};
inline constexpr std::array<std::string_view, 5> injected_fault_names{"nothing", "hang", "gpu-fault", "exit", "abort"};

[[nodiscard]] constexpr u64 fault_word(injected_fault kind, u32 epoch) noexcept { return u64{epoch} << 8U | static_cast<u64>(kind); }
/// What the word asks the life `epoch` for.
[[nodiscard]] constexpr injected_fault fault_for(u64 raw, u32 epoch) noexcept {
    const u64 kind = raw & 0xFFU;
    return raw >> 8U == epoch && kind < injected_fault_names.size() ? static_cast<injected_fault>(kind) : injected_fault::nothing;
}
/// nothing: no such name.
[[nodiscard]] constexpr injected_fault fault_named(std::string_view name) noexcept {
    for (std::size_t k = 1; k < injected_fault_names.size(); ++k)
        if (injected_fault_names[k] == name) return static_cast<injected_fault>(k);
    return injected_fault::nothing;
}

}  // namespace carousel::shm
