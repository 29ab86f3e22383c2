#pragma once
// How a stage accesses rings on another GPU: either through the mapping, so that its kernels read and write
// over the link, or by a copy of the slot to its own GPU before the kernels and back after them. The faster
// way depends on the kernels: reading a byte once favours the mapping, reading it often favours the copy. So
// both ways are measured with the stage's own frames, at the start of each process: mapping, copy, mapping,
// copy, each for some frames; the way with the faster best round is kept. The copy must be faster by 3 %.
//
// Threads: next() and state() are called on the main thread, the other functions on the thread that waits for
// the device.

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "telemetry/depth.hpp"

namespace carousel::stages {

class reach_choice {
public:
    enum class way : u8 { mapping, copy };
    static constexpr u32 rounds = 4, frames_a_round = 48, passed_over = 16;

    /// `peer`: there is a choice to be made; otherwise the mapping is always used.
    explicit reach_choice(bool peer) : peer_(peer), trial_(peer) {}
    /// For the frame that begins now.
    [[nodiscard]] way next() const noexcept { return now_.load(std::memory_order_relaxed); }
    [[nodiscard]] telemetry::reach_state state() const noexcept;
    /// Adds a frame: whether it was processed by copy, and its time on the device. Returns true if this call
    /// has made the choice.
    bool add(bool by_copy, u64 span_ns);
    /// The choice as text.
    [[nodiscard]] std::string report() const;

private:
    [[nodiscard]] way of_round() const noexcept { return round_ % 2 == 0 ? way::mapping : way::copy; }

    const bool peer_;
    std::atomic<bool> trial_;
    std::atomic<way> now_{way::mapping};
    u32 round_ = 0, passed_ = 0;
    std::vector<u64> spans_;
    std::array<u64, 2> best_{~u64{0}, ~u64{0}};  ///< ns per frame, for each way
};

}  // namespace carousel::stages
