#pragma once
// One wait of a stream for a permit, independent of the stream and the thread (cuda/stream_gates.hpp): the
// result of the wait, and which call gives the permit back. A process guards each of its waits by a mutex;
// the words that other processes see are the gate's and the semaphore's.
//
// The order of calls: open; request_permit, when the stream is there; decide, when the thread's turn in the
// line is over. drop, at any time: after the kernels in stream order, or when the permit is no longer wanted.
//
// A crash anywhere leaves what gate.hpp and semaphore.hpp describe: the rest is memory of that process.

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

/// Until the stream makes its request the deadline is far, because the stream may get there late.
void open(gate_wait& w);
void request_permit(gate_wait& w, u64 deadline_ns);
/// A stream that the holder has released, or whose wait was dropped, has no permit: the permit goes back.
void decide(gate_wait& w, semaphore s, std::optional<permit> got);
/// At once, or when it is decided: then the gate is CLOSED, and kernels after it have no permit.
void drop(gate_wait& w, semaphore s);
/// CLOSED as well if the gate has been opened for another wait.
[[nodiscard]] gate_state state_of(const gate_wait& w);

}  // namespace carousel::ipc
