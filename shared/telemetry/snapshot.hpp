#pragma once
// One picture of a run: everything that viewers, tables and pages show, copied out of the control block as
// plain data.
//
// Who may call: any process, any thread, on any mapping, also a read-only one (shm::segment::observe):
// nothing is written and nothing is held, so whoever is stopped in mid-read changes nothing. The values of
// one snapshot were read one after the other; each is true for itself, two of them may be some microseconds
// apart. A damaged block yields wrong numbers, never an access out of range: every count and index is bounded
// here, names end, and what a consumer of a snapshot may use as an index is either in range of the snapshot's
// own vectors or shm::none.

#include <array>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "ring/words.hpp"
#include "shm/control_block.hpp"
#include "telemetry/bottleneck.hpp"
#include "telemetry/depth.hpp"

namespace carousel::telemetry {

using bucket_counts = std::array<u64, shm::latency_buckets>;

/// One instance of a stage and the process that sits on it.
struct seat_view {
    u32 stage = shm::none, instance = 0;
    u32 entry = shm::none;   ///< none: nobody was ever appointed
    u32 pid = 0, epoch = 0;  ///< of the process that sits, or sat last
    u32 turn = 0;            ///< which of the seat's processes that is, from 1; 0: nobody was ever appointed
    ring::entry_state state = ring::entry_state::unused;
    bool paused = false;  ///< stopped by the user, no deadline runs
    u32 unfenced = 0;     ///< predecessors whose end isn't proved yet
    u64 heartbeat_ns = 0, live_since_ns = 0, cpu_ns = 0, commits = 0;
    u64 exit_note = 0;       ///< of the newest predecessor that left one: ring::note_exit, note_signal
    u32 device = 0;          ///< device::device_kind
    depth_view depth;        ///< how many frames it keeps in flight now, and why
    u32 jobs_in_flight = 0;  ///< job words that are OPEN or SUBMITTED
    /// Processes that were here before. A turn that nobody has claimed (at the end of a run nobody will) is
    /// none.
    [[nodiscard]] u32 restarts() const noexcept {
        const u32 before = pid != 0 ? 1 : 2;
        return turn > before ? turn - before : 0;
    }
};

/// A frame in work: OPEN or SUBMITTED.
struct job_view {
    u32 seat = shm::none, stage = shm::none;
    ring::job_state state = ring::job_state::idle;
    u64 ring_sequence = 0, process_since_ns = 0, submitted_since_ns = 0;  ///< 0: not yet
};

struct stage_view {
    std::string name;
    std::vector<u32> inputs;        ///< indices into snapshot::links
    std::vector<u32> outputs;       ///< the same; none: a sink
    u32 first_seat = 0, seats = 0;  ///< range of snapshot::seats
    u32 in_flight = 0, flags = 0;
    bool source = false;
    u64 frames = 0, tombstones = 0, torn = 0, helped = 0, revoked_commits = 0;
    stage_time time;
    u64 in_flight_high_water = 0;
    u64 latency_max_ns = 0, end_to_end_max_ns = 0;
    bucket_counts latency{}, handover{}, end_to_end{}, from_capture{};
};

/// What a slot is to a viewer: its status word, and whether a reader has it.
enum class slot_phase : u8 { free, fill, ready, leased, done, quarantined };
[[nodiscard]] const char* name_of(slot_phase p) noexcept;
[[nodiscard]] const char* name_of(ring::entry_state s) noexcept;

struct slot_view {
    ring::slot_word word{};
    slot_phase phase = slot_phase::free;
    u32 stage = shm::none;  ///< whose job filled it
    u64 ring_sequence = 0;  ///< ready, leased, done; free: of the frame that it held last
    u32 void_stage = shm::none;
    u32 leased_by = 0;  ///< one bit a group
    u64 born_ns = 0, claimed_ns = 0, submitted_ns = 0, committed_ns = 0;
};

struct group_view {
    u32 index = 0;  ///< of the link's groups
    ring::group_state state = ring::group_state::absent;
    u32 stage = shm::none;  ///< consuming stage; none: a tap that belongs to no stage
    u32 leases = 0;
    u64 skipped = 0;
    u64 next = 0;  ///< blocking: the first sequence that it has not done
    u64 lag = 0;   ///< blocking: READY frames that it has not done; latest: of those newer than its last
    u64 lease_since_ns = 0;  ///< latest: of its present lease
};

struct link_view {
    std::string name;
    u32 stage = shm::none;  ///< producer
    u32 window = 0;
    u64 slot_bytes = 0;
    u32 memory = 0;  ///< device::memory_kind
    u64 tail = 0, committed = 0;
    u64 newest = 0;  ///< highest READY sequence + 1; the tail when there is none
    std::vector<slot_view> slots;
    std::vector<group_view> groups;  ///< those that are not absent

    /// Frames that its producer is ahead of its slowest blocking reader.
    [[nodiscard]] u32 ahead() const noexcept;
};

struct snapshot {
    u64 taken_ns = 0;  ///< now_ns() when it was read
    std::string run_id, pipeline;
    u64 created_ns = 0;
    u32 width = 0, height = 0;
    f64 fps = 0;  ///< wanted; 0: as fast as it goes
    u64 end = ring::end_unknown, first_ring_sequence = 0;
    u64 supervisor_heartbeat_ns = 0;
    u32 supervisor_pid = 0;
    u32 parameter_bytes = 0;   ///< of a set; 0: no parameters
    u64 parameter_number = 0;  ///< of the newest set: what frames to come will have
    u64 parameter_from = 0;    ///< its first frame
    std::array<std::byte, shm::max_parameter_bytes> parameters{};  ///< its values
    std::vector<stage_view> stages;
    std::vector<seat_view> seats;
    std::vector<link_view> links;
    std::vector<job_view> jobs;  ///< those in work

    /// The name of a stage, or "?" for an index that has none.
    [[nodiscard]] const std::string& stage_name(u32 stage) const noexcept;
    /// "fragment", or "fragment.1" where the stage has several instances.
    [[nodiscard]] std::string seat_label(u32 seat) const;
    /// Of the rings behind a stage the one with the least room left: it holds the stage up first. Null: a
    /// sink.
    [[nodiscard]] const link_view* fullest_output(u32 stage) const noexcept;
    [[nodiscard]] bool ended() const noexcept;  ///< every frame of the run is through all rings
};

[[nodiscard]] snapshot read_snapshot(const shm::control_block& c);
/// The same into a snapshot whose memory is used again.
void read_snapshot(const shm::control_block& c, snapshot& out);

/// The quantile p (0..1) of the samples in `b` in milliseconds, 0 when there are none.
[[nodiscard]] f64 percentile_ms(const bucket_counts& b, f64 p) noexcept;
/// "signal 9 (SIGKILL)", "exit code 3", "" for 0.
[[nodiscard]] std::string describe_exit_note(u64 note);
/// "4.2 ms", "1.25 s".
[[nodiscard]] std::string describe_span(u64 ns);

}  // namespace carousel::telemetry
