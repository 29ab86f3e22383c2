#pragma once
// The gates of ipc/gate.hpp and what a stream does at one (ipc/gate.hpp, cuda/stream_gates.cpp): one
// step for each load, store and CAS of a gate's words. Each incarnation has one gate, a thread that waits in
// the semaphore's line, and two streams, so that a gate can be opened again while an abandoned stream still
// waits at it. The semaphore is reduced to its permits: semaphore_model.hpp has its line. A stopped
// incarnation's kernels run on. Time is an age of each wait: its deadline is to come, over, or a second over.
// A wait that depends on an older deadline may be over at any time. A thread can be blocked: it does nothing
// any more.

#include "incarnations.hpp"

namespace carousel::ipc_model {

struct gate_setup : setting {
    u8 permits = 1;
    u8 rounds = 1;  ///< waits of the first incarnation; the others have one
    u8 stalls = 0;  ///< threads that do nothing any more
    u8 drops = 0;   ///< waits that are abandoned without a release in stream order

    // The rules of the code; each `false` is a seeded bug.
    bool deadline_first = true;           ///< a gate's deadline is stored before it is PENDING
    bool deadline_read_last = true;       ///< the holder reads a gate's deadline after its word
    bool deadline_when_requested = true;  ///< and the real one before its stream waits
    bool holder_swaps = true;             ///< the holder closes by CAS
    bool thread_swaps = true;             ///< and so does the thread
    bool next_generation = true;          ///< each opening is another generation
    bool successor_continues = true;      ///< also that of the next client with that entry
    bool opened_when_over = true;         ///< a gate is opened when its wait is over
    bool any_answer = true;               ///< a stream continues at any answer
    bool permit_first = true;             ///< granted after the CAS that took the permit
    bool kernels_check_permit = true;     ///< kernels run only where the permit is granted
    bool released_after_kernels = true;   ///< a permit is returned after the kernels
    bool dropped_not_granted = true;      ///< a process that abandoned a wait is not notified of the grant
    bool dropped_released = true;         ///< and what its thread gets then goes back
    bool holder_closes = true;            ///< what is a second late
    bool repairs_permits = true;
};

result explore(const gate_setup& s, u64 max_states);

}  // namespace carousel::ipc_model
