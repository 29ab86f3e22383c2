#pragma once
// What is said of torn frames (device/backend.hpp, status_word): which frame, which ring, and who fills that.
// A writer that has gone wrong can tear every frame, so a line a second is enough; the counters have them
// all.

#include <span>
#include <string_view>

#include "core/types.hpp"
#include "device/backend.hpp"

namespace carousel {

struct torn_input {
    std::string_view ring;   ///< its name
    std::string_view maker;  ///< the stage that fills it
    bool differs = false;    ///< the CPU sees its word as another than was expected: differs_now()
};

/// Asked with the slot still leased. False where the CPU can't look: memory of a GPU.
[[nodiscard]] bool differs_now(const device::mapping& of, const device::status_word* at,
                               const device::status_word& expected) noexcept;

/// One thread at a time.
class torn_lines {
public:
    /// Of a frame with so many words that the device has seen to differ, among those of its `inputs`: a line
    /// for each that differs now, or one that names all where that says nothing.
    void report(u64 ring_sequence, u32 words, std::span<const torn_input> inputs);

private:
    u64 next_ns_ = 0;
    u64 untold_ = 0;  ///< words
};

}  // namespace carousel
