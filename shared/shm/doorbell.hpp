#pragma once
// A doorbell in shared memory: signals that a word for which a process waits may have changed. It is a raw,
// non-private futex, because std::atomic::wait does not wake another process.
//
// Protocol: the waiter reads ticket(), checks the words for which it waits, and then sleeps if the ticket is
// still valid. ring() increments the count and wakes waiters only if the sleep bit is set, so a call of
// ring() costs one atomic add if no process waits. Ordering: both sides do a read-modify-write on the same
// word (acq_rel). The later operation observes the effect of the earlier one. If ring() comes after the sleep
// bit is set, ring() wakes the waiter. If ring() comes first, the attempt to set the sleep bit fails, because
// the ticket has changed. Crash: every sleep is bounded (max_sleep_ns) because a process may die between its
// change and ring(); a waiter that dies leaves the sleep bit set, which costs the next ring() one system
// call.

#include "shm/control_block.hpp"

namespace carousel::shm {

inline constexpr u64 max_sleep_ns = 100'000'000;

/// Returns how often the doorbell was rung, for a later call of wait(). May be called from any process and
/// any thread, like wait() and ring().
[[nodiscard]] u32 ticket(const doorbell_word& bell) noexcept;
/// Sleeps until the doorbell is rung after the ticket `seen` was taken, at most `timeout_ns` (bounded by
/// max_sleep_ns). Returns true if rung. A signal may end the sleep early, so the caller checks its own
/// deadline.
bool wait(doorbell_word& bell, u32 seen, u64 timeout_ns) noexcept;
/// Wakes all sleepers. Called after a word has been changed.
void ring(doorbell_word& bell) noexcept;

}  // namespace carousel::shm
