#pragma once
// A second stack for the signal handlers of a thread, so that a stack overflow can be recorded: the handler
// of its SIGSEGV could not run on the full stack.

#include <cstddef>

namespace carousel {

/// From its construction to its end, handlers with SA_ONSTACK use a stack of their own on the calling thread.
/// Does nothing if the thread has such a stack already, or if there is no memory: then a stack overflow ends
/// the process without a record. Must be destroyed on the same thread.
class signal_stack {
public:
    signal_stack() noexcept;
    ~signal_stack();
    signal_stack(const signal_stack&) = delete;
    signal_stack& operator=(const signal_stack&) = delete;

private:
    void* memory_ = nullptr;  ///< null: this object has installed no stack
};

}  // namespace carousel
