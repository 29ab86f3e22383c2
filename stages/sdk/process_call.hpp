#pragma once
// The call of stage::process(), and the check that work it enqueues for the CPU does not refer to that call:
// enqueued work runs after process() has returned, so a variable captured by reference ([&]) no longer exists
// then. C++ can't distinguish a captured reference from a captured pointer at compile time; in memory both
// are addresses in the stack of process(), which this check finds.

#include <cstddef>
#include <type_traits>

namespace carousel {

class frame;
class stage;

namespace detail {

/// Calls s.process(f); during the call this thread's stack below this frame counts as that of process().
void call_process(stage& s, frame& f);

/// Throws config_error if a word of `object` is an address in the stack of the process() call that runs in
/// this thread, other than in `object` itself. Does nothing outside process().
void refuse_stack_addresses(const std::byte* object, std::size_t bytes);

/// Checks closures that consist only of their captures. Other closures (for example with a std::string
/// captured by value) may contain addresses of their own parts and padding, and are not checked.
template <typename Task>
void check_captures(const Task& task) {
    if constexpr (std::is_trivially_copyable_v<Task> && !std::is_empty_v<Task>)
        refuse_stack_addresses(reinterpret_cast<const std::byte*>(&task), sizeof(Task));
}

}  // namespace detail
}  // namespace carousel
