#pragma once
// A doorbell in shared memory: "something that you may wait for has changed". A raw, non-private futex, since
// std::atomic::wait does not wake another process.
//
// Protocol: the waiter reads ticket(), looks at the words it waits for, then sleeps if the ticket is still
// good. ring() counts up and wakes only when the sleep bit is set, so a ring that nobody waits for costs one
// atomic add. Ordering: both sides do a read-modify-write on the same word (acq_rel). Whichever comes second
// sees what the other did before: a ring after the sleep bit wakes; a sleep bit after the ring fails on the
// ticket. Crash: a ringer that dies between its change and ring() is why every sleep is bounded (max_sleep);
// a waiter that dies leaves the sleep bit set, which costs the next ringer one system call.

#include "shm/control_block.hpp"

namespace carousel::shm {

inline constexpr u64 max_sleep_ns = 100'000'000;

[[nodiscard]] u32 ticket(const doorbell_word& bell) noexcept;
/// Sleeps until a ring after `seen` was taken, at most `timeout_ns` (bounded by max_sleep_ns). True when
/// rung. A signal may end the sleep early: a caller holds its own deadline.
bool wait(doorbell_word& bell, u32 seen, u64 timeout_ns) noexcept;
void ring(doorbell_word& bell) noexcept;

}  // namespace carousel::shm
