#pragma once
// A word of the control block with one flipped bit, between two checks of the engine: it is repaired when two
// consecutive checks compute the same value (ring/check/repair.hpp); if no two consecutive checks agree,
// the block is rebuilt.

#include <optional>

#include "ring/check/repair.hpp"

namespace carousel::supervisor {

struct pending_repair {
    static constexpr u32 max_checks = 8;  ///< about 160 ms, which is shorter than the time that stages wait
                                          ///< (ring::repair_timeout_ns)

    ring::damaged_word word;
    std::optional<u64> value;  ///< the result of the last check
    u32 checks = 0;
};

}  // namespace carousel::supervisor
