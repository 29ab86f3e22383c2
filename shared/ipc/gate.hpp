#pragma once
// Gates: words in page-locked host memory at which a stream waits (cuStreamWaitValue32). Each wait of a
// stream has its own gate, which only CPUs change; the GPU reads it.
// clang-format off
//   gate word   {generation:30, state:2}   PENDING(g) -> GRANTED(g), EXPIRED(g) or CLOSED(g); then PENDING(g + 1)
//   deadline    time of CLOCK_MONOTONIC at which the stream continues in any case
// A stream continues when the word is no longer PENDING(g), and later kernels may read the reason. A stream
// never waits for another client process: its own process opens the gate, and closes it when the permit is
// granted or the timeout has expired. If that process fails to close the gate (because its thread does
// not run), the holder closes it, one second late.
// step                       | a crash right after it leaves     | repaired by
// the deadline, far          | a deadline that no process reads  | not needed
// PENDING                    | a gate at which no stream waits   | the next client with that entry continues
//                            |                                   | from its generation; the holder may close it
// the request: deadline      | the same                          | the same
// PENDING -> GRANTED         | a permit                          | the semaphore's repair
// PENDING -> EXPIRED, CLOSED | nothing                           |
// clang-format on
// Memory order: the word is changed by CAS (acq_rel) after the CAS that took the permit; the stream's wait
// reads the word before the stream's next kernel. The deadline is stored before PENDING, and the holder reads
// the deadline after the word. So if a process reads the word and then the deadline, it reads either the
// deadline of that word, or a later deadline of another generation. If it has read a later deadline, its CAS
// fails.

#include <optional>

#include "ipc/semaphore.hpp"
#include "ipc/words.hpp"

namespace carousel::ipc {

enum class gate_state : u32 { pending, granted, expired, closed };
struct alignas(16) gate {
    std::atomic<u32> at;
    u32 reserved;
    word deadline_ns;
};
inline constexpr u32 gates_each = 16;  ///< gates per client, which limits the number of its concurrent waits
struct gate_row {
    gate of[gates_each];
};
static_assert(sizeof(gate) == 16 && std::atomic<u32>::is_always_lock_free);

[[nodiscard]] constexpr u32 gate_word(u32 generation, gate_state s) {
    return generation << 2U | static_cast<u32>(s);
}
[[nodiscard]] constexpr gate_state state_of(u32 w) { return static_cast<gate_state>(w & 3U); }

/// Opens a gate at which no stream waits. Called by the client that owns the row. Returns its generation.
u32 open_gate(gate& g, u64 deadline_ns);
/// Returns false if another process has closed the gate first.
bool close_gate(gate& g, u32 generation, gate_state to);

inline constexpr u64 gate_grace_ns = 1'000'000'000;
inline constexpr u64 no_deadline_ns = ~u64{0} - gate_grace_ns;  ///< never expires
/// For the holder: closes gates that were not closed in time.
void close_overdue(gate_row& row, u64 now_ns);

// One wait of a stream for a permit. This code determines the result of the wait, and also which call gives
// the permit back. The code uses neither the stream nor the thread (both are in cuda/stream_gates.hpp). A
// process guards each of its waits by a mutex; other processes see only the words of the gate and of the
// semaphore. The functions are called in this order: open(); request_permit(), when the stream has reached
// the wait; decide(), when the thread has left the line. drop() may be called at any time: after the kernels,
// in stream order, or when the permit is no longer needed. A crash at any point leaves the states that
// gate.hpp and semaphore.hpp describe; all other state is memory of the crashed process.

struct gate_wait {
    ipc::gate* gate = nullptr;
    u32 generation = 0;
    u64 deadline_ns = 0;
    std::optional<permit> held;
    bool decided = false, dropped = false;
};

/// Opens the gate. Until request_permit() is called, the deadline is far in the future, because the stream
/// may reach the wait late.
void open(gate_wait& w);
void request_permit(gate_wait& w, u64 deadline_ns);
/// Closes the gate with the result. If the holder has already released the stream, or if the wait was
/// dropped, the stream has no permit, and the permit `got` is given back.
void decide(gate_wait& w, semaphore s, std::optional<permit> got);
/// Gives the permit back at once if decide() has already been called. If not, the later call of decide()
/// gives the permit back, the gate becomes CLOSED, and kernels after the wait have no permit.
void drop(gate_wait& w, semaphore s);
/// Also returns CLOSED if the gate has meanwhile been opened for another wait.
[[nodiscard]] gate_state state_of(const gate_wait& w);

}  // namespace carousel::ipc
