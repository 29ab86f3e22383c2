#pragma once
// One seeded history of each primitive: clients that use it in every way, what they know of it, and the rules
// that must hold under all deaths. `done` increases by the completed operations. Returns false if a client
// waits forever.
#include <cstring>

#include "history.hpp"

namespace carousel::test {

/// No permit is out twice or lost, no client is overtaken.
bool semaphore_history(history& h, u64 seed, u64& done);
/// Each element is delivered at most once; only elements that a dead process had popped are lost, and these
/// are counted; the elements of each producer arrive in order; the capacity is unchanged.
bool queue_history(history& h, u64 seed, u64& done);
/// Each task is committed once or is a dead letter, after its number of attempts.
bool work_history(history& h, u64 seed, u64& done);
/// No unit is in two blocks, none is leaked, also while blocks are given through a queue.
bool pool_history(history& h, u64 seed, u64& done);

/// Streams at gates: kernels run only with a permit, each gate stays open for its full time, and no gate
/// blocks a stream permanently.
bool gate_history(history& h, u64 seed, u64& done);

/// Holders and repairers, real processes: what dead clients had in a queue of kernels is repaired and counted
/// once, by one repairer at a time.
bool repairer_history(history& h, u64 seed, u64& done);

}  // namespace carousel::test
