#pragma once
// The primitives of test_kills.cpp: small, so that they are full and empty all the time.
#include "ipc/space_block.hpp"

namespace carousel::test {

inline constexpr ipc::shape turns{ipc::kind::semaphore, 2, 0, 0};
inline constexpr ipc::shape samples{ipc::kind::queue, 8, 16, 0};
inline constexpr ipc::shape tiles{ipc::kind::work_queue, 8, 16, 4};
inline constexpr ipc::shape pages{ipc::kind::pool, u64{24} * 4096, 4096, 0};
inline constexpr ipc::shape travels{ipc::kind::queue, 3, 32, 0};  ///< `more`: 1 + the place of the pool

}  // namespace carousel::test
