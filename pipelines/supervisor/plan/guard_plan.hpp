#pragma once
// Determines what follows each slot of a ring, and which stages could write to memory of other stages.

#include <string>
#include <vector>

#include "device/backend.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::shm {
struct control_block;
}

namespace carousel::supervisor {

struct run_setup;
struct stage_setup;

// The area that follows each slot of a ring is a gap or a canary. A gap is a range of addresses at which no
// process has anything mapped, so that a write beyond a slot faults its writer (device/backend.hpp,
// memory_handle). A canary is a range of bytes that the slot's writer checks before it commits a frame
// (device/canary.hpp). Decisions only.

/// The size of a piece of GPU memory is a multiple of this.
inline constexpr u64 device_piece_step = 2 * 1024 * 1024;
/// Maximum number of descriptors in one message. A single message brings a stage the descriptors of all
/// memory of its run.
inline constexpr u64 most_descriptors = 240;

struct slot_guard {
    /// number of pieces, one per slot; 0: there are no gaps, and the slots are contiguous
    u32 pieces = 0;
    u64 piece_bytes = 0;   ///< size of a slot with its padding
    std::string why;       ///< the reason why there are no gaps; "": there are gaps
    u64 canary_bytes = 0;  ///< number of canary bytes after each slot; 0: there are no canaries
    /// the instance that writes the slot is not the only process that can write to the canaries
    bool others_write = false;
    bool readers_write = false;  ///< a reader can write to the canaries
    [[nodiscard]] bool gaps() const noexcept { return pieces > 0; }
    [[nodiscard]] bool canaries() const noexcept { return canary_bytes > 0; }
    /// "gap", "canary", "none".
    [[nodiscard]] const char* name() const noexcept;
};

/// The properties that choose_guard() needs of the stage that writes the ring.
struct slot_writer {
    bool plants = true;
    bool same_host_address = true;  ///< false: the stage maps host memory as one block, without gaps
};

/// Chooses the guard of a ring of `slots` x `slot_bytes` in memory of `kind`. On the CPU a gap costs the
/// unused rest of a page. On a GPU each slot is a separate allocation, which takes a descriptor and up to 2
/// MiB more memory. So a ring has gaps only if the `descriptors_left` suffice for all its slots. This bounds
/// the padding of a run to less than 480 MiB, which is taken into account when depths are chosen
/// (depth_plan.hpp). A ring without gaps gets canaries (64 KiB per slot and a small amount of device time per
/// frame) if its writer `plants` canaries, which a stage program does and a port does not.
[[nodiscard]] slot_guard choose_guard(device::memory_kind kind, guard_request requested, u32 slots,
                                      u64 slot_bytes, u64 descriptors_left, slot_writer by = {});

// Determines which stages could write to memory of other stages. Where possible, rings and assets of other
// stages are mapped read-only, and gaps or canaries follow the slots of rings.

struct unguarded_input {
    std::string stage;
    std::string memory;  ///< "ring vertex", "asset mesh"
    std::string why;
};
/// Lists the unguarded inputs in the order of the stages.
[[nodiscard]] std::vector<unguarded_input> unguarded_inputs(const run_setup& s);

struct unguarded_output {
    std::string memory;  ///< "ring vertex"
    std::string why;
};
/// Lists the rings that have neither gaps nor canaries after their slots, in the order of the control block.
[[nodiscard]] std::vector<unguarded_output> unguarded_outputs(const run_setup& s);

/// True if all output rings of that stage were made with canaries; their slots are then larger than the
/// payload.
[[nodiscard]] bool has_canaries(const shm::control_block& made, u32 stage, const stage_setup& as);

/// Throws config_error with the place in the file if guard = "gap" or "canary" is requested where it is not
/// possible.
void require_guards(const run_setup& s);

/// Returns a text for the plan: "inputs: guarded ..." or "inputs: unguarded: ..."; in the same form for the
/// outputs.
[[nodiscard]] std::string guard_text(const run_setup& s);
[[nodiscard]] std::string output_guard_text(const run_setup& s);
/// Returns "control block: ...", which describes how the block is guarded on this host and with this CPU.
[[nodiscard]] std::string block_guard_text(const run_setup& s);

}  // namespace carousel::supervisor
