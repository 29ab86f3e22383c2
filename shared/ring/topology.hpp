#pragma once
// Writes the static parts and the first words of a fresh control block from a list of stages. Supervisor
// only, before publish().

#include <string>
#include <vector>

#include "core/types.hpp"
#include "ring/words.hpp"

namespace carousel::ring {

/// Another output ring of a stage, after its first.
struct ring_plan {
    std::string name;
    u32 window = 0;  ///< 0: derived
    u64 slot_bytes = 0;
    u64 latest_lease_ns = 0;  ///< 0: the plan's
};

struct stage_plan {
    std::string name;
    std::vector<u32> inputs;  ///< indices of stages
    bool has_output = false;
    u32 in_flight = 3;
    u32 instances = 1;
    u32 max_attempts = 3;
    u64 frame_timeout_ns = 2'000'000'000;  ///< 0: none
    bool owner_commits = false, latest = false, optional = false, ends = false, skips = false;
    u32 window = 0;  ///< window of the first output's link; 0: derived
    u64 slot_bytes = 0;
    std::vector<u32> input_outputs = {};  ///< the output that each input reads; missing: the first output
    std::vector<ring_plan> more = {};     ///< outputs after the first
    /// stages, anywhere in the plan, whose newest frame this stage samples
    std::vector<u32> sampled_inputs = {};
    /// the output of each of these stages that is sampled; missing: the first output
    std::vector<u32> sampled_outputs = {};
    u64 latest_lease_ns = 0;  ///< lease time of members of the first output's link; 0: the plan's value
    u32 every = 1;            ///< the stage takes only frames whose sequence is a multiple of this number
    bool state = false;       ///< the last output is the ring of the stage's states
};

/// The initial values of the counters in a fresh control block. Any value is valid, because all counters wrap
/// around.
struct first_counters {
    u32 generation = 1;  ///< of slots
    u32 lap = 0;         ///< of sources' numbers
    u64 version = 1;     ///< of jobs
    u32 epoch = 0;       ///< epoch that each seat has before its first holder
};
/// Each counter starts just below its wrap, so that a short run covers all wraps.
inline constexpr first_counters counters_near_overflow{generation_mask - 2, generation_mask - 2,
                                                       (u64{1} << 36U) - 4, epoch_mask - 2};

struct plan {
    std::string pipeline;
    u32 width = 0, height = 0;
    f64 fps = 0;
    u64 frame_timeout_ns = 2'000'000'000, latest_lease_ns = 250'000'000;
    u64 first_ring_sequence = 0;  ///< the first sequence of the run
    first_counters first;
    u64 end = end_unknown;
    std::vector<stage_plan> stages;  ///< producers before consumers
};

/// Returns the window of a link in frames: the plan's value, if the plan has one. If the plan has none, the
/// window is the producer's frames in flight plus the frames in flight of the largest group, but at least 8,
/// so that a short delay at one end does not immediately stall the other end.
[[nodiscard]] u32 derived_window(const plan& p, u32 stage, u32 output = 0);
/// Returns the number of buffers of a link: the sum of the window, the frames in flight of all instances of
/// the producer, the frames in flight of one unfenced incarnation, and one spare buffer.
[[nodiscard]] u32 derived_slots(const plan& p, u32 stage, u32 output = 0);
/// Throws config_error if a limit of the control block is exceeded (the message has the limit and its value).
void initialise(shm::control_block& c, const plan& p);
/// Sets the words of a source in a block that is not published: the numbers below `first` are done.
void begin_numbers(shm::control_block& c, u32 source, u64 first) noexcept;

}  // namespace carousel::ring
