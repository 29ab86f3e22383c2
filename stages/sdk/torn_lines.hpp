#pragma once
// Log lines about torn frames (device/backend.hpp, status_word): the frame, the ring, and the stage that
// fills the ring. A faulty writer can tear every frame, so the log has at most one line per second; the
// counters have all of them.

#include <span>
#include <string_view>

#include "core/types.hpp"
#include "device/backend.hpp"

namespace carousel {

struct torn_input {
    std::string_view ring;   ///< its name
    std::string_view maker;  ///< the stage that fills it
    bool differs = false;    ///< the CPU sees a word other than the expected one: differs_now()
};

/// Call it while the slot is still leased. False if the CPU can't read the memory (of a GPU).
[[nodiscard]] bool differs_now(const device::mapping& of, const device::status_word* at,
                               const device::status_word& expected) noexcept;

/// One thread at a time.
class torn_lines {
public:
    /// Reports a frame for which the device has counted `words` mismatching status words among its `inputs`:
    /// one line for each input that differs now, or one line that names all inputs if none does.
    void report(u64 ring_sequence, u32 words, std::span<const torn_input> inputs);

private:
    u64 next_ns_ = 0;
    u64 unlogged_ = 0;  ///< words not yet logged
};

}  // namespace carousel
