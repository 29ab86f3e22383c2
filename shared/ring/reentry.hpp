#pragma once
// Frames that a rebuild keeps: READY frames of the old block whose bytes are still in the rings' memory enter
// the words of the new block. For the supervisor alone, when every process of the run is fenced, or is a
// revoked program of a port, and before the new block is published; so no frame is committed meanwhile, and a
// supervisor that dies leaves a block that no process can attach to.
//
// The old words may be the damaged part. Tails, leases, numbers and job words of the old block are not read.
// A frame is proved by four places, each of which its maker wrote for itself:
//   - its slot is READY (a header and a status word may be complete before the host work of finish() is);
//   - its header matches its seal, and names a seat of the stage that fills the ring;
//   - the status word in the ring's memory has the number and the epoch of the header, and READY;
//   - no other slot of the ring proves the same number.
//
// Which of them enter: each sink continues at its own position, the first frame that it lacks. Any other
// stage is *done below* the frame up to which its rings hold, without a gap and from the position of the
// slowest reader on, every frame. A ring's tail is the position of its slowest reader. What follows a gap is
// made again, because the maker of the missing frame would otherwise make frames twice. The result is a state
// that a run without deaths reaches, so no step of the protocol has a new case.
//
// A source may be unable to make a frame again, because a program outside has written it (`made_once`); it
// has one frame at a time. A
// frame that such a source has made, that a reader still needs and that no memory proves is lost. It enters
// as a tombstone in the ring in which it is missing, so the frames after it are kept, and it is reported. A
// frame is made if the source's ring, or one downstream of it, proves that frame or a later one, if a sink
// has delivered it, or if a READY slot without proof carries its number directly after these.
//
// A stage with a state continues only where its ring of states proves the state before its position; that
// state enters below the tail. A frame of its rings that nothing proves is made again only if the state
// before it is in memory, and is otherwise lost, as a frame of a program is. If no state from `first` on is
// proved, no position of the stage is valid (`kept_frames::without_state`).
//
// The epochs of the new block begin above those of the headers that enter and of all processes of the old
// block (epoch_above), so a status word of the old block never equals that of a new frame.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "device/backend.hpp"
#include "ring/participants.hpp"
#include "ring/words.hpp"

namespace carousel::ring {

/// Returns the status word of a slot (link, slot); empty if this process cannot read the ring's memory.
using status_reader = std::function<std::optional<device::status_word>(u32, u32)>;

struct reentry_limits {
    u64 first = 0;  ///< the first frame that a sink lacks
    u64 end = 0;    ///< frames from this number on do not enter
    /// By stage: the first frame that this sink lacks; no_number: an absent reader, which no ring waits for.
    /// Empty: `first` for every sink.
    std::vector<u64> delivered_below;
    std::vector<bool> made_once;  ///< by stage: a source that cannot make a frame again; empty: none
    /// By stage: the frame after the last one that this sink has delivered. A sink may wait for a frame that
    /// no source has begun, so `delivered_below` may be higher. Empty: `delivered_below`.
    std::vector<u64> recorded_below = {};
    u64 origin = 0;  ///< the frame of the run that has no state before it
};

struct kept_frames {
    std::vector<u64> done_below;  ///< by stage
    std::vector<u64> tail;        ///< by link
    /// by link: the slots of the frames from the tail on; shm::none: the frame is lost
    std::vector<std::vector<u32>> slots;
    std::vector<u32> state;  ///< by link: the slot of the state below the tail; shm::none: there is none
    u32 without_state = shm::none;  ///< the stage whose state is not in memory: nothing may enter
    /// by link: a slot may have held a frame that cannot be made again, and whose number is not known
    std::vector<bool> unknown;
    [[nodiscard]] u64 count() const noexcept;     ///< frames that are kept, over all rings
    [[nodiscard]] std::vector<u64> lost() const;  ///< their numbers, in ascending order, each once
};

/// `made`: the static parts, from the plan.
[[nodiscard]] kept_frames find_kept_frames(const shm::control_block& old, const shm::control_block& made,
                                           const reentry_limits& limits, const status_reader& status);
/// Writes the frames into a block that is initialised for the first frame and not published. `now`: the time
/// that a tombstone shows. Without positions (a default `kept`), no frame enters. Throws shm_error.
void enter_frames(shm::control_block& fresh, const shm::control_block& old, const kept_frames& kept, u64 now);
/// Gives the seat of this incarnation to no process, and ends every job of the seat, in a damaged block that
/// will be replaced: a process that cannot be killed finds that it is revoked, and commits nothing. For words
/// that R2 cannot revoke.
void abort_all(shm::control_block& old, const incarnation_id& who) noexcept;
/// Keeps the slots that a process of a port may still write to from every other process. The process is
/// revoked in the old block and not fenced. To be called before enter_frames(); afterwards R5 frees the slots
/// in the new block once the process is fenced. `replaced`, by link: a ring has other memory than in the old
/// block, so the process can write to none of its slots; empty: no ring.
void enter_unfenced(shm::control_block& fresh, const shm::control_block& old, const incarnation_id& who,
                    const std::vector<bool>& replaced = {});
/// By link: processes that are not fenced may still write to more slots than the ring has beyond its window.
/// Such a ring cannot keep its memory.
[[nodiscard]] std::vector<bool> find_crowded(const shm::control_block& old, const shm::control_block& made,
                                             std::span<const incarnation_id> unfenced);
/// The newest epoch in the seats' words, in sealed headers of READY frames and in `known`, for
/// first_counters::epoch. `known`: epochs that the supervisor has given; a seat's word may be damaged.
[[nodiscard]] u32 epoch_above(const shm::control_block& old, const shm::control_block& made,
                              std::span<const u32> known = {}) noexcept;

}  // namespace carousel::ring
