#include "stages/sdk/process_call.hpp"

#include <carousel/stage.hpp>

#include <cstdint>
#include <cstring>
#include <utility>

namespace carousel::detail {
namespace {

/// The start of the stack of the thread's current process() call (the stack grows downwards); 0: none.
thread_local std::uintptr_t process_stack = 0;

[[gnu::always_inline]] inline std::uintptr_t here() {
    return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

}  // namespace

[[gnu::noinline]] void call_process(stage& s, frame& f) {
    struct restored {
        std::uintptr_t before = std::exchange(process_stack, here());
        ~restored() { process_stack = before; }
    } const scope;
    s.process(f);
}

[[gnu::noinline]] void refuse_stack_addresses(const std::byte* copy, const void* object, std::size_t bytes) {
    const std::uintptr_t begin = here(), own = reinterpret_cast<std::uintptr_t>(object);
    for (std::size_t at = 0; at + sizeof begin <= bytes; at += sizeof begin) {
        std::uintptr_t word = 0;
        std::memcpy(&word, copy + at, sizeof word);
        if (word < begin || word >= process_stack || (word >= own && word < own + bytes)) continue;
        throw config_error(
            "process() enqueues a function that refers to a variable of process() itself: the function runs "
            "after "
            "process() has returned, when that variable no longer exists; capture values ([=], [x]) instead "
            "of "
            "references ([&], [&x]) and instead of pointers to local variables");
    }
}

}  // namespace carousel::detail
