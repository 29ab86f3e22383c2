#include "ring/words.hpp"

#include <time.h>

#include "core/clock.hpp"

namespace carousel::ring {

// No doorbell rings for a repaired word that only its owner waits for; since such a repair is rare, the owner
// polls with short sleeps.
bool await_repair(const word& at) noexcept {
    if (intact(load(at))) return true;
    const u64 until = now_ns() + repair_timeout_ns;
    const timespec a_while{0, 5'000'000};
    while (now_ns() < until) {
        ::nanosleep(&a_while, nullptr);
        if (intact(load(at))) return true;
    }
    return false;
}

bool cas_after_repair(word& at, u64 expected, u64 desired) noexcept {
    if (cas(at, expected, desired)) return true;
    if (intact(load(at))) return false;
    return await_repair(at) && cas(at, expected, desired);
}

}  // namespace carousel::ring
