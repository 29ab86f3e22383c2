#pragma once
// The named steps of the primitives: between any two changes of shared memory, a test can inspect, stop or
// kill a client. The steps are present in every build, so that the tested code is the shipped code; without a
// hook, each step costs one load and one branch that is never taken.
//
// A hook may throw an exception. A function that passes a step is therefore not noexcept, and has no guard
// object whose destructor would change the state that a crash leaves.

#include <string_view>

#include "ipc/steps.hpp"
#include "ipc/words.hpp"
#include "shm/doorbell.hpp"

namespace carousel::ipc {

[[nodiscard]] std::string_view name_of(step s) noexcept;
inline constexpr u32 steps = static_cast<u32>(step::count_);

/// The step hook, the sleep function and the clock of a client. Tests without threads replace them.
struct hooks {
    void (*at)(step s) = nullptr;
    u64 (*now_ns)() = nullptr;
    bool (*sleep)(shm::doorbell_word& bell, u32 seen, u64 timeout_ns) = nullptr;
};
/// To be called while no other thread uses a primitive. set_hooks({}) restores the defaults.
void set_hooks(const hooks& h) noexcept;

namespace detail {
extern hooks hooked;
}

inline void at(step s) {
    if (detail::hooked.at != nullptr) [[unlikely]]
        detail::hooked.at(s);
}
/// The class Side of a body (queue_body.hpp), for CPUs, with its steps.
struct cpu_side : cpu_words {
    static void at(step s) { ipc::at(s); }
};
[[nodiscard]] u64 clock_ns();
/// Returns the current time plus `timeout_ns`, or the largest u64 if the sum would overflow.
[[nodiscard]] u64 deadline_after(u64 timeout_ns);
/// Sleeps until the doorbell rings, the deadline has passed, or 100 ms have passed. Returns false if the
/// deadline has passed, or if the thread's wait check ends the wait (wait_check.hpp).
bool sleep_until(shm::doorbell_word& bell, u32 seen, u64 deadline_ns);

}  // namespace carousel::ipc
