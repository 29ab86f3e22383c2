#include "core/signal_stack.hpp"

#include <sys/mman.h>

#include <csignal>

namespace carousel {
namespace {

// Frames with the registers of recent processors take 11 KiB, and Python's handler runs on this stack, too.
// Only the pages that are used take memory.
constexpr std::size_t stack_bytes = 128 * 1024;
constexpr std::size_t guard_bytes = 4096;  // below the stack, which grows down

}  // namespace

signal_stack::signal_stack() noexcept {
    stack_t before{};
    if (::sigaltstack(nullptr, &before) != 0 || (before.ss_flags & SS_DISABLE) == 0) return;
    void* const memory = ::mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    stack_t own{};
    own.ss_sp = static_cast<char*>(memory) + guard_bytes;
    own.ss_size = stack_bytes;
    if (::mprotect(memory, guard_bytes, PROT_NONE) != 0 || ::sigaltstack(&own, nullptr) != 0) {
        ::munmap(memory, guard_bytes + stack_bytes);
        return;
    }
    memory_ = memory;
}

signal_stack::~signal_stack() {
    if (memory_ == nullptr) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    if (::sigaltstack(&none, nullptr) == 0) ::munmap(memory_, guard_bytes + stack_bytes);
}

}  // namespace carousel
