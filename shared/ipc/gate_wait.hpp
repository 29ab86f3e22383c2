#pragma once
// One wait of a stream for a permit, apart from the stream and the thread (cuda/stream_gates.hpp): who is
// told what, and who gives the permit back. A process guards each of its waits by a mutex; the words that
// other processes see are the gate's and the semaphore's.
//
// In this order: open; ask, when the stream is there; decide, when the thread's turn in the line is over.
// drop, at any time: behind the kernels in stream order, or because nobody wants the permit any more.
//
// A death anywhere leaves what gate.hpp and semaphore.hpp say: the rest is memory of that process.

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

/// Until the stream asks its deadline is far, for it may get there late.
void open(gate_wait& w);
void request_permit(gate_wait& w, u64 deadline_ns);
/// A stream that the holder has sent on, or that nobody asks about any more, has no permit: it goes back.
void decide(gate_wait& w, semaphore s, std::optional<permit> got);
/// At once, or when it is decided: then the gate is CLOSED, and kernels behind it have no permit.
void drop(gate_wait& w, semaphore s);
/// CLOSED as well when the gate has been opened for another wait.
[[nodiscard]] gate_state state_of(const gate_wait& w);

}  // namespace carousel::ipc
