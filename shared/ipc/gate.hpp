#pragma once
// Gates: words in page-locked host memory at which a stream waits (cuStreamWaitValue32). Each waiting of a
// stream has a gate of its own, which CPUs alone change; the GPU reads it.
//
// clang-format off
//   gate word   {generation:30, state:2}   PENDING(g) -> GRANTED(g), EXPIRED(g) or CLOSED(g); then PENDING(g + 1)
//   deadline    when the stream goes on in any case, CLOCK_MONOTONIC
//
// A stream goes on when the word is PENDING(g) no more, and kernels behind it may ask why. A stream waits for
// nothing that another process does: its own process opens the gate, and closes it when the permit is there or the
// time is over (gate_wait.hpp). If it doesn't (its thread is in trouble) the holder does, a second late.
//
// step                       | a death right behind it leaves        | who mends it
// the deadline, far          | a deadline that nobody reads          | nobody needs to
// PENDING                    | a gate at which nobody waits          | the next client with that entry goes on from its
//                            |                                       | generation; the holder may close it
// the stream asks: deadline  | the same                              | the same
// PENDING -> GRANTED         | a permit                              | the semaphore's mend
// PENDING -> EXPIRED, CLOSED | nothing                               |
// clang-format on
//
// Memory order: the word is changed by CAS (acq_rel) behind the CAS that took the permit; the stream's wait
// reads it before its next kernel. The deadline goes before PENDING, and the holder reads it behind the word:
// so who has read a word reads its deadline, or a later one with another generation, and then its CAS fails.

#include "ipc/words.hpp"

namespace carousel::ipc {

enum class gate_state : u32 { pending, granted, expired, closed };
struct alignas(16) gate {
    std::atomic<u32> at;
    u32 reserved;
    word deadline_ns;
};
inline constexpr u32 gates_each = 16;  ///< of a client: so many waits at a time
struct gate_row {
    gate of[gates_each];
};
static_assert(sizeof(gate) == 16 && std::atomic<u32>::is_always_lock_free);

[[nodiscard]] constexpr u32 gate_word(u32 generation, gate_state s) {
    return generation << 2U | static_cast<u32>(s);
}
[[nodiscard]] constexpr gate_state state_of(u32 w) { return static_cast<gate_state>(w & 3U); }

/// By the client whose row it is, for a gate at which nothing waits. Its generation.
u32 open_gate(gate& g, u64 deadline_ns);
/// False: somebody was faster.
bool close_gate(gate& g, u32 generation, gate_state to);

inline constexpr u64 gate_grace_ns = 1'000'000'000;
inline constexpr u64 no_deadline_ns = ~u64{0} - gate_grace_ns;  ///< nobody's time is over
/// The holder: gates that nobody has closed in time.
void close_overdue(gate_row& row, u64 now_ns);

}  // namespace carousel::ipc
