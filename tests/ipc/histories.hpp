#pragma once
// One seeded history of each primitive: clients that use it in every way, what they know of it, and the rules
// that must hold whoever dies. `done` grows by what was got done. False: somebody waits for ever.
#include <cstring>

#include "history.hpp"

namespace carousel::test {

/// No permit is out twice or gone, nobody is overtaken.
bool semaphore_history(history& h, u64 seed, u64& done);
/// No element comes twice, none is lost but those that a dead process had popped, which are counted; each
/// producer's come in order; capacity stays.
bool queue_history(history& h, u64 seed, u64& done);
/// Each task is committed once or is a dead letter, behind as many attempts as it had.
bool work_history(history& h, u64 seed, u64& done);
/// No unit is in two blocks, none is leaked, also while blocks are given through a queue.
bool pool_history(history& h, u64 seed, u64& done);

/// Streams at gates: kernels run with a permit alone, no gate is closed before its time, none keeps a stream.
bool gate_history(history& h, u64 seed, u64& done);

/// Holders and menders, real processes: what the dead had in a queue of kernels is mended and counted once,
/// by one mender at a time.
bool repairer_history(history& h, u64 seed, u64& done);

}  // namespace carousel::test
