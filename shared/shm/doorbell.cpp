#include "shm/doorbell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

#include "shm/block_guard.hpp"

namespace carousel::shm {
namespace {
constexpr u32 sleeping = 1;

long futex(std::atomic<u32>& at, int operation, u32 value, const timespec* timeout) noexcept {
    static_assert(sizeof(std::atomic<u32>) == 4);
    return syscall(SYS_futex, reinterpret_cast<u32*>(&at), operation, value, timeout, nullptr, 0);
}
}  // namespace

u32 ticket(const doorbell_word& bell) noexcept {
    return bell.value.load(std::memory_order_acquire) & ~sleeping;
}

namespace {

/// Returns false if the word has changed; `now` is set to its new value.
bool set_sleeping(doorbell_word& bell, u32& now) noexcept {
    const block_open open;
    return bell.value.compare_exchange_weak(now, now | sleeping, std::memory_order_acq_rel,
                                            std::memory_order_acquire);
}

}  // namespace

// A thread can sleep while the word's page is closed to writes, because the kernel only reads the word.
bool wait(doorbell_word& bell, u32 seen, u64 timeout_ns) noexcept {
    u32 now = bell.value.load(std::memory_order_acquire);
    while ((now & ~sleeping) == seen) {
        if ((now & sleeping) != 0U || set_sleeping(bell, now)) {
            const u64 bounded = std::min(timeout_ns, max_sleep_ns);
            const timespec t{static_cast<time_t>(bounded / 1'000'000'000U),
                             static_cast<long>(bounded % 1'000'000'000U)};
            futex(bell.value, FUTEX_WAIT, seen | sleeping, &t);
            return ticket(bell) != seen;
        }
    }
    return true;
}

void ring(doorbell_word& bell) noexcept {
    const shm::block_open open;
    u32 now = bell.value.load(std::memory_order_relaxed);
    while (!bell.value.compare_exchange_weak(now, (now & ~sleeping) + 2U, std::memory_order_acq_rel,
                                             std::memory_order_relaxed)) {
    }
    if ((now & sleeping) != 0U) futex(bell.value, FUTEX_WAKE, INT_MAX, nullptr);
}

}  // namespace carousel::shm
