#pragma once
// Frames that a rebuild keeps: READY frames of the old block whose bytes are still in the rings' memory enter
// the words of the new block. For the supervisor alone, when every process of the run is fenced, and before
// the new block is published; so no word or header changes meanwhile, and a supervisor that dies leaves a
// block that no process can attach to.
//
// The old words may be the damaged part. Tails, leases, numbers and job words of the old block are not read.
// A frame is proved by four places, each of which its maker wrote for itself:
//   - its slot is READY (a header and a status word may be complete before the host work of finish() is);
//   - its header matches its seal, and names a seat of the stage that fills the ring;
//   - the status word in the ring's memory has the number and the epoch of the header, and READY;
//   - no other slot of the ring proves the same number.
//
// Which of them enter: all sinks continue at `first`. A stage is *done below* the frame up to which its rings
// hold, without a gap and from the position of the slowest reader on, every frame. A ring's tail is the
// position of its slowest reader. What follows a gap is made again, because the maker of the missing frame
// would otherwise make frames twice. The result is a state that a run without deaths reaches, so no step of
// the protocol has a new case.
//
// The epochs of the new block begin above those of the headers that enter (epoch_above), so a status word of
// the old block never equals that of a new frame.

#include <functional>
#include <optional>
#include <vector>

#include "device/backend.hpp"
#include "ring/words.hpp"

namespace carousel::ring {

/// Returns the status word of a slot (link, slot); empty if this process cannot read the ring's memory.
using status_reader = std::function<std::optional<device::status_word>(u32, u32)>;

struct kept_frames {
    std::vector<u64> done_below;          ///< by stage
    std::vector<u64> tail;                ///< by link
    std::vector<std::vector<u32>> slots;  ///< by link: the slots of the frames from the tail on
    [[nodiscard]] u64 count() const noexcept;
};

/// `made`: the static parts, from the plan. `first`: the first frame that a sink lacks. Frames from `end` on
/// do not enter.
[[nodiscard]] kept_frames find_kept_frames(const shm::control_block& old, const shm::control_block& made,
                                           u64 first, u64 end, const status_reader& status);
/// Writes the frames into a block that is initialised for `first` and not published.
void enter_frames(shm::control_block& fresh, const shm::control_block& old, const kept_frames& kept);
/// The highest epoch in the seats' words and in sealed headers of READY frames, for first_counters::epoch.
[[nodiscard]] u32 epoch_above(const shm::control_block& old, const shm::control_block& made) noexcept;

}  // namespace carousel::ring
