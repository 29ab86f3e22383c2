#pragma once
// A call of stage::process(), and the check that what it enqueues for the CPU refers to nothing of that call:
// enqueued work runs after process() has returned, so a variable captured by reference ([&]) no longer exists
// then. C++ can't tell a captured reference from a captured pointer at compile time; in memory both are
// addresses in the stack of process(), which are found here.

#include <cstddef>
#include <type_traits>

namespace carousel {

class frame;
class stage;

namespace detail {

/// Calls s.process(f), during which this thread's stack below here counts as that of process().
void call_process(stage& s, frame& f);

/// Throws config_error if one of the words of `object` is an address in the stack of the process() that runs
/// in this thread, other than in `object` itself. Nothing outside process().
void refuse_stack_addresses(const std::byte* object, std::size_t bytes);

/// Checks the closures whose bytes are their captures. Others (a std::string captured by value) may have
/// addresses of their own parts and unused bytes, and are not checked.
template <typename Task>
void check_captures(const Task& task) {
    if constexpr (std::is_trivially_copyable_v<Task> && !std::is_empty_v<Task>)
        refuse_stack_addresses(reinterpret_cast<const std::byte*>(&task), sizeof(Task));
}

}  // namespace detail
}  // namespace carousel
