#pragma once
// How a stage reaches rings that lie on another GPU: through the mapping, so that its kernels read and write
// over the link, or by a copy of the slot to its own GPU before them and back behind them. Which is quicker
// depends on what the kernels do: who reads a byte once gains by the mapping, who reads it often by the copy.
// So it is measured with the stage's own frames, at the start of each process: mapping, copy, mapping, copy,
// each for some frames, and the way stays whose better round was quicker. The copy has to be so by 3 %.
//
// Who may call: next() and state() the main thread, the others the completion thread.

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

    /// `peer`: there is something to be chosen; else it is the mapping for good.
    explicit reach_choice(bool peer) : peer_(peer), trial_(peer) {}
    /// For the frame that is begun now.
    [[nodiscard]] way next() const noexcept { return now_.load(std::memory_order_relaxed); }
    [[nodiscard]] telemetry::reach_state state() const noexcept;
    /// A frame that went by a copy or not, and what it took on the device. True: the choice has just been
    /// made.
    bool add(bool by_copy, u64 span_ns);
    /// The choice, in words.
    [[nodiscard]] std::string report() const;

private:
    [[nodiscard]] way of_round() const noexcept { return round_ % 2 == 0 ? way::mapping : way::copy; }

    const bool peer_;
    std::atomic<bool> trial_;
    std::atomic<way> now_{way::mapping};
    u32 round_ = 0, passed_ = 0;
    std::vector<u64> spans_;
    std::array<u64, 2> best_{~u64{0}, ~u64{0}};  ///< ns a frame; by way
};

}  // namespace carousel::stages
