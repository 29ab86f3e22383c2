#pragma once
// A word of the control block that is damaged by one bit, between two looks of the engine: it is mended when
// two of them, one after the other, agree on what it was (ring/word_repair.hpp), and the block is made anew
// when they never do.

#include <optional>

#include "ring/word_repair.hpp"

namespace carousel::supervisor {

struct pending_repair {
    static constexpr u32 max_checks = 8;  ///< about 160 ms: within what stages wait (ring::repair_timeout_ns)

    ring::damaged_word word;
    std::optional<u64> value;  ///< what the last look said
    u32 checks = 0;
};

}  // namespace carousel::supervisor
