#pragma once
// A snapshot of a run: all values that viewers, tables and the dashboard show, copied from the control block
// as plain data.
// Threading: any process and any thread, on any mapping, including a read-only one (shm::segment::observe).
// Nothing is written and no lease is held, so a reader that is stopped during the read has no effect. The
// values of a snapshot are read one after the other; each is correct by itself, but two of them may be some
// microseconds apart. A damaged block yields wrong numbers, never an out-of-bounds access: every count and
// index is bounded here, names are terminated, and every value that a consumer of a snapshot may use as an
// index is either in range of the snapshot's own vectors or shm::none.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "ring/words.hpp"
#include "shm/control_block.hpp"
#include "telemetry/bottleneck.hpp"
#include "telemetry/depth.hpp"

namespace carousel::telemetry {

using bucket_counts = std::array<u64, shm::latency_buckets>;

/// One instance of a stage and the process that holds its seat.
struct seat_view {
    u32 stage = shm::none, instance = 0;
    u32 entry = shm::none;   ///< none: no process was ever appointed
    u32 pid = 0, epoch = 0;  ///< of the process that holds the seat, or held it last
    u32 turn = 0;  ///< ordinal of that process on the seat, from 1; 0: no process was ever appointed
    ring::entry_state state = ring::entry_state::unused;
    bool paused = false;  ///< paused by the user; no deadline is active
    u32 unfenced = 0;     ///< number of predecessors not yet proved to have ended
    u64 heartbeat_ns = 0, live_since_ns = 0, cpu_ns = 0, commits = 0;
    u64 exit_note = 0;       ///< exit note of the newest predecessor: ring::note_exit, note_signal; 0: none
    u32 device = 0;          ///< device::device_kind
    depth_view depth;        ///< the number of frames that the process keeps in flight, and the reason
    u32 jobs_in_flight = 0;  ///< job words that are OPEN or SUBMITTED
    /// Number of earlier processes on this seat. If no process has claimed the seat since the last
    /// appointment (as at the end of a run), that appointment is not counted.
    [[nodiscard]] u32 restarts() const noexcept {
        const u32 before = pid != 0 ? 1 : 2;
        return turn > before ? turn - before : 0;
    }
};

/// A frame in progress: its job is OPEN or SUBMITTED.
struct job_view {
    u32 seat = shm::none, stage = shm::none;
    ring::job_state state = ring::job_state::idle;
    u64 ring_sequence = 0, process_since_ns = 0, submitted_since_ns = 0;  ///< 0: not yet
};

struct stage_view {
    std::string name;
    std::vector<u32> inputs;        ///< indices into snapshot::links
    std::vector<u32> outputs;       ///< indices into snapshot::links
    u32 first_seat = 0, seats = 0;  ///< range of snapshot::seats
    u32 in_flight = 0, flags = 0;
    bool source = false;
    u64 frames = 0, tombstones = 0, torn = 0, helped = 0, revoked_commits = 0;
    stage_time time;
    u64 in_flight_high_water = 0;
    u64 latency_max_ns = 0, end_to_end_max_ns = 0;
    bucket_counts latency{}, handover{}, end_to_end{}, from_capture{};
    /// As shm::is_sink().
    [[nodiscard]] bool is_sink() const noexcept {
        return outputs.empty() || (outputs.size() == 1 && (flags & shm::stage_flag::state) != 0);
    }
};

/// A slot's state for a viewer: its slot word, and whether a reader has a lease on it.
enum class slot_phase : u8 { free, fill, ready, leased, done, quarantined };
[[nodiscard]] const char* name_of(slot_phase p) noexcept;
[[nodiscard]] const char* name_of(ring::entry_state s) noexcept;

struct slot_view {
    ring::slot_word word{};
    slot_phase phase = slot_phase::free;
    u32 stage = shm::none;  ///< the stage whose job filled the slot
    u64 ring_sequence = 0;  ///< phases ready, leased and done: sequence of the frame in the slot; phase free:
                            ///< sequence of the last frame that was in the slot
    u32 tombstone_stage = shm::none;
    u32 leased_by = 0;  ///< one bit per group
    u64 born_ns = 0, claimed_ns = 0, submitted_ns = 0, committed_ns = 0;
};

struct group_view {
    u32 index = 0;  ///< among the link's groups
    ring::group_state state = ring::group_state::absent;
    u32 stage = shm::none;  ///< consuming stage; none: a tap without a stage
    u32 leases = 0;
    u64 skipped = 0;
    u64 next = 0;            ///< blocking: the first sequence that is not DONE
    u64 lag = 0;             ///< blocking: number of READY frames that are not DONE; latest: 0
    u64 lease_since_ns = 0;  ///< latest: start of the current lease
};

struct link_view {
    std::string name;
    u32 stage = shm::none;  ///< producer
    u32 window = 0;
    u64 slot_bytes = 0;
    u32 memory = 0;  ///< device::memory_kind
    u64 tail = 0, committed = 0;
    u64 newest = 0;  ///< highest READY sequence + 1; the tail if there is none
    std::vector<slot_view> slots;
    std::vector<group_view> groups;  ///< the groups that are not absent

    /// Returns the number of frames by which the producer is ahead of its slowest blocking reader.
    [[nodiscard]] u32 ahead() const noexcept;
};

struct snapshot {
    u64 taken_ns = 0;  ///< now_ns() at the start of the read
    std::string run_id, pipeline;
    u64 created_ns = 0;
    u32 width = 0, height = 0;
    f64 fps = 0;  ///< requested frames per second; 0: unlimited
    u64 end = ring::end_unknown, first_ring_sequence = 0;
    u64 supervisor_heartbeat_ns = 0;
    u32 supervisor_pid = 0;
    u32 parameter_bytes = 0;   ///< size of one set; 0: no parameters
    u64 parameter_number = 0;  ///< number of the newest set, which later frames will use
    u64 parameter_from = 0;    ///< first frame of that set
    std::array<std::byte, shm::max_parameter_bytes> parameters{};  ///< values of that set
    std::vector<stage_view> stages;
    std::vector<seat_view> seats;
    std::vector<link_view> links;
    std::vector<job_view> jobs;  ///< jobs in progress

    /// The name of a stage, or "?" for an invalid index.
    [[nodiscard]] const std::string& stage_name(u32 stage) const noexcept;
    /// "fragment", or "fragment.1" if the stage has several instances.
    [[nodiscard]] std::string seat_label(u32 seat) const;
    /// Returns the stage's output ring with the least free room, which is the first to block the stage. Null
    /// for a sink.
    [[nodiscard]] const link_view* fullest_output(u32 stage) const noexcept;
    [[nodiscard]] bool ended() const noexcept;  ///< every frame of the run has passed all rings
};

[[nodiscard]] snapshot read_snapshot(const shm::control_block& c);
/// Like read_snapshot() above, but reuses the memory of `out`.
void read_snapshot(const shm::control_block& c, snapshot& out);

/// Returns the quantile p (0..1) of the samples in `b` in milliseconds; 0 if there are none.
[[nodiscard]] f64 percentile_ms(const bucket_counts& b, f64 p) noexcept;
/// "signal 9 (SIGKILL)", "exit code 3", "" for 0.
[[nodiscard]] std::string describe_exit_note(u64 note);
/// "4.2 ms", "1.25 s".
[[nodiscard]] std::string describe_span(u64 ns);

// For observers: whether a run continues without its supervisor and, if it has ended, its exit code. The
// supervisor records the end in the control block, because observers keep their mapping when the block's name
// and the run's runtime directory are gone. The record is the high half of control_block::supervisor; the low
// half is the supervisor's pid. If the high half is 0, the run has not ended. If the run has ended, the high
// half contains a mark, the complement of the exit code, and the exit code, so that a flipped bit in the word
// of a run that continues does not read as the end of the run.

/// Called only by the supervisor, when the run's exit code is known.
void note_end(shm::control_block& c, int exit_code) noexcept;
/// Returns the run's exit code; empty: the run has not ended, or no supervisor was left to record it.
[[nodiscard]] std::optional<int> end_of(const shm::control_block& c) noexcept;
/// Number of live processes on the run's seats, identified by (pid, start time).
[[nodiscard]] u32 living_stages(const shm::control_block& c) noexcept;
/// Compares two blocks with the same run id. Returns true if they are different blocks, because the run has
/// been restarted with new memory.
[[nodiscard]] inline bool is_recreated(const shm::control_block& watched,
                                       const shm::control_block& present) noexcept {
    return watched.created_ns != present.created_ns;
}

}  // namespace carousel::telemetry
