#include "stages/runner/fault_injection.hpp"

#include <chrono>
#include <cstdlib>
#include <thread>

#include "core/log.hpp"
#include "shm/injected_fault.hpp"
#include "stages/runner/exit_note.hpp"

namespace carousel::stages {
namespace {

// Out of line: the frame's path is the load alone.
[[gnu::noinline]] void do_harm(runtime& r, shm::word& at, u64 asked) {
    const shm::injected_fault kind = shm::fault_for(asked, r.who().epoch);
    // meant for a successor: this process is revoked and doesn't know it yet
    if (asked >> 8U > r.who().epoch) return;
    const bool taken = at.compare_exchange_strong(asked, 0, std::memory_order_acq_rel);
    // nothing: meant for a predecessor that died before it looked
    if (!taken || kind == shm::injected_fault::nothing) return;
    log::warning("`carousel inject`: {}", shm::name_of(kind));
    switch (kind) {
        case shm::injected_fault::hang:
            for (;;) std::this_thread::sleep_for(std::chrono::milliseconds(100));
        case shm::injected_fault::gpu_fault:
            r.queue().fault();
            return;
        case shm::injected_fault::exit:
            die(3);
        case shm::injected_fault::abort:
            std::abort();
        case shm::injected_fault::nothing:
            return;
    }
}

}  // namespace

void inject_fault_if_asked(runtime& r) {
    shm::word& at = r.control().seat[r.who().seat].fault;
    const u64 asked = at.load(std::memory_order_relaxed);
    if (asked != 0) [[unlikely]]
        do_harm(r, at, asked);
}

}  // namespace carousel::stages
