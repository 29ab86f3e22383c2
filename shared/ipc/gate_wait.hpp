#pragma once
// One wait of a stream for a permit, independent of the stream and the thread (cuda/stream_gates.hpp): the
// result of the wait, and which call gives the permit back. A process guards each of its waits by a mutex;
// other processes see only the words of the gate and of the semaphore.
//
// The order of calls: open; request_permit, when the stream has reached the wait; decide, when the thread has
// left the line. drop may be called at any time: in stream order after the kernels, or when the permit is no
// longer needed.
//
// A crash at any point leaves the states that gate.hpp and semaphore.hpp describe; everything else is memory
// of that process.

#include <optional>

#include "ipc/gate.hpp"
#include "ipc/semaphore.hpp"

namespace carousel::ipc {

struct gate_wait {
    ipc::gate* gate = nullptr;
    u32 generation = 0;
    u64 deadline_ns = 0;
    std::optional<permit> held;
    bool decided = false, dropped = false;
};

/// Until the stream makes its request, the deadline is far in the future, because the stream may reach the
/// wait late.
void open(gate_wait& w);
void request_permit(gate_wait& w, u64 deadline_ns);
/// A stream that the holder has released, or whose wait was dropped, has no permit: the permit goes back.
void decide(gate_wait& w, semaphore s, std::optional<permit> got);
/// Gives the permit back at once, or, if the wait is not decided yet, when it is decided: the gate is then
/// CLOSED, and kernels after it have no permit.
void drop(gate_wait& w, semaphore s);
/// Also CLOSED if the gate has been opened for another wait.
[[nodiscard]] gate_state state_of(const gate_wait& w);

}  // namespace carousel::ipc
