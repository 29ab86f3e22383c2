#pragma once
// The named steps of the primitives: between any two changes of shared memory a test can look, stop a client
// or make it die. In every build, so that what is tested is what is shipped; without a hook each costs one
// load and one branch that is never taken.
//
// A hook may throw: no function that passes a step is noexcept, and none has a guard that would undo on the
// way out what a death leaves.

#include <string_view>

#include "ipc/steps.hpp"
#include "ipc/words.hpp"
#include "shm/doorbell.hpp"

namespace carousel::ipc {

[[nodiscard]] std::string_view name_of(step s) noexcept;
inline constexpr u32 steps = static_cast<u32>(step::count_);

/// How a client sleeps and what time it is: tests that have no threads bring their own.
struct hooks {
    void (*at)(step s) = nullptr;
    u64 (*now_ns)() = nullptr;
    bool (*sleep)(shm::doorbell_word& bell, u32 seen, u64 timeout_ns) = nullptr;
};
/// Set it while no other thread uses a primitive. {} sets them back.
void set_hooks(const hooks& h) noexcept;

namespace detail {
extern hooks hooked;
}

inline void at(step s) {
    if (detail::hooked.at != nullptr) [[unlikely]]
        detail::hooked.at(s);
}
/// The CPU's side of a body, with its steps.
struct cpu_side : cpu_words {
    static void at(step s) { ipc::at(s); }
};
[[nodiscard]] u64 clock_ns();
/// The clock's reading after so long; never comes round.
[[nodiscard]] u64 deadline_after(u64 timeout_ns);
/// Sleeps at a doorbell until it rings or the deadline or 100 ms are over. False: the deadline is over.
bool sleep_until(shm::doorbell_word& bell, u32 seen, u64 deadline_ns);

}  // namespace carousel::ipc
