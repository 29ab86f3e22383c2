#pragma once
// The call of stage::process(), and a check of the work that the call enqueues for the CPU: this work must
// not refer to variables of the call. The work runs after process() has returned, when a variable captured by
// reference ([&]) no longer exists. C++ can't distinguish a captured reference from a captured pointer at
// compile time; in memory both are addresses in the stack of process(), which this check finds.

#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <typeinfo>

namespace carousel {

class frame;
class stage;

namespace detail {

/// Calls s.process(f). During the call, the part of this thread's stack below the stack frame of
/// call_process() is treated as the stack of process().
void call_process(stage& s, frame& f);

/// Throws config_error if a word of `copy`, the bytes of `object`, is an address in the stack of the
/// process() call that runs in this thread, other than in `object` itself. Does nothing outside process().
void refuse_stack_addresses(const std::byte* copy, const void* object, std::size_t bytes);

// Padding has what was in this memory before, which can be a part of an address. GCC can clear it; with other
// compilers the check may, rarely, refuse a function for it.
#if defined(__has_builtin) && !defined(__CUDACC__)
#if __has_builtin(__builtin_clear_padding)
#define CAROUSEL_CLEAR_PADDING(object) __builtin_clear_padding(object)
#endif
#endif

/// Checks closures that consist only of their captures. Other closures (for example with a std::string
/// captured by value) may contain addresses of their own parts, and are not checked.
template <typename Task>
void check_captures(const Task& task) {
    if constexpr (std::is_trivially_copyable_v<Task> && !std::is_empty_v<Task>) {
#if defined(CAROUSEL_CLEAR_PADDING)
        alignas(Task) std::byte copy[sizeof(Task)];
        std::memcpy(copy, static_cast<const void*>(&task), sizeof(Task));
        CAROUSEL_CLEAR_PADDING(reinterpret_cast<Task*>(copy));
        refuse_stack_addresses(copy, &task, sizeof(Task));
#else
        refuse_stack_addresses(reinterpret_cast<const std::byte*>(&task), &task, sizeof(Task));
#endif
    }
}
#undef CAROUSEL_CLEAR_PADDING

}  // namespace detail

// The value that frame::local() returns: one object of any type, created by the first call. Needs no
// synchronisation of its own, because the runner's queue between process() and finish() orders the accesses
// by these two functions.

class frame_local {
public:
    template <typename T>
    [[nodiscard]] T& get() {
        if (!object_) {
            object_ = std::make_shared<T>();
            type_ = &typeid(T);
        } else if (*type_ != typeid(T)) {
            throw std::logic_error(
                "frame::local(): this frame's object has another type; process() and finish() must use the "
                "same type");
        }
        return *static_cast<T*>(object_.get());
    }
    void clear() noexcept { object_.reset(); }

private:
    std::shared_ptr<void> object_;
    const std::type_info* type_ = nullptr;
};

}  // namespace carousel
