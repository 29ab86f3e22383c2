#pragma once
// The control block: all state that the processes of one run share, in one Boost.Interprocess shared memory
// object.
//
// Who may call: any process of the run's user. This header defines the layout only; the algorithms are in
// ring/. Words are lock-free 64-bit atomics; the block holds no lock, no pointer and no allocator, so a
// process may die at any instruction. Lifetime: created by the supervisor (segment.hpp), removed by it at the
// end of the run or by `carousel clean`. Static parts (names, topology, sizes) are written before `magic` is
// stored (release) and never again. Job, slot, group and source words are changed by CAS only; ring/words.hpp
// defines their fields and ring/ the legal transitions. Every index and size read from the block is checked
// before use: a faulty process may have written any value.
//
// Access rights apply to whole pages, so words of different writers lie on different pages (`own_page`): the
// words that only the supervisor writes are apart from the words of each stage, seat, ring, source, asset and
// incarnation. A stage maps the block read-only and makes the pages writable that the protocol's steps of its
// seat write (ring/own_pages.hpp): a wild write elsewhere faults in the process that makes it. The job words
// of all seats share a page, since consumers commit for their producers.
//
// The words are followed by one frame segment per ring: the headers of its slots (frame_header.hpp), writable
// by the ring's producer only.

#include <atomic>
#include <cstddef>
#include <cstring>

#include "core/types.hpp"
#include "shm/frame_header.hpp"
#include "shm/number_word.hpp"
#include "shm/parameter_bytes.hpp"

namespace carousel::shm {

inline constexpr u64 control_magic = 0x4c45'5355'4f52'4143ULL;  // "CAROUSEL"
/// Layout version of this block and of the files that several processes of a run write (ledgers). Attaching
/// refuses a program of another version.
inline constexpr u32 control_version = 17;

inline constexpr u32 max_stages = 32;
inline constexpr u32 max_seats = 64;  ///< instances of all stages
inline constexpr u32 max_links = 32;  ///< one per output of a stage
inline constexpr u32 max_window = 48;
inline constexpr u32 max_inputs = 4;
inline constexpr u32 max_outputs = 4;
inline constexpr u32 max_blocking = 8;  ///< groups 0..7 of a link
inline constexpr u32 max_latest = 8;    ///< groups 8..15 of a link: join and leave at run time
inline constexpr u32 max_groups = max_blocking + max_latest;
inline constexpr u32 max_jobs = 512;
inline constexpr u32 max_incarnations = 192;
inline constexpr u32 max_sources = 8;
inline constexpr u32 max_assets = 16;
inline constexpr u32 max_turns = 16;  ///< GPUs on which stages take turns
inline constexpr u32 latency_buckets = 256;
inline constexpr u32 max_parameter_sets = 64;  ///< a power of two above max_window

inline constexpr u64 own_page = frame_page;  ///< what begins here and what precedes it have different writers

/// A futex that processes sleep on, see doorbell.hpp. Bit 0: a process sleeps; the other bits count rings.
struct alignas(64) doorbell_word {
    std::atomic<u32> value;
};

/// The ring of one output of a stage.
struct link_block {
    char name[48];                ///< name of the producing stage, or STAGE.OUTPUT
    u32 stage;                    ///< producing stage
    u32 slots;                    ///< buffers, <= max_slots
    u32 window;                   ///< N: sequences beyond the tail that may be in flight
    u32 blocking;                 ///< blocking groups in use: 0 .. blocking-1
    u32 group_stage[max_groups];  ///< consuming stage of a blocking group
    u64 slot_bytes;  ///< per slot; for the slots' positions see device/backend.hpp, mapping::slot
    u32 memory;      ///< device::memory_kind
    u32 memory_ready;
    std::byte ipc_handle[64];  ///< memory kind ipc: cudaIpcMemHandle_t

    alignas(own_page) tail_word tail;  ///< T: all blocking groups are done with every position below it
    word group_state[max_groups];      ///< ring/words.hpp: group_state_word
    word lease_since_ns[max_groups];   ///< latest groups: when the member's current lease began
    word skipped[max_groups];          ///< frames that a group did not get (latest, or a closed group)
    alignas(64) word slot[max_slots];
    alignas(64) word group[max_slots][max_groups];
    word event_tag[max_slots];  ///< CPU events: tag of the completed job; at a first output
    word committed;             ///< frames committed into this link
    /// when the frame in the slot was committed, as observed by its owner or a helper; used for latencies
    /// only
    word committed_ns[max_slots];
};

enum class asset_state : u64 {
    empty = 0,
    loading = 1,
    ready = 2,
    damaged = 15
};  ///< ring/words.hpp: asset_word
struct asset_block {
    char name[48];
    u64 bytes;
    u32 maker_stage;
    u32 memory;  ///< device::memory_kind
    std::byte ipc_handle[64];
    alignas(own_page) word state;
};

/// Counters of a stage, summed over its instances and incarnations. Relaxed adds; any process may read them
/// at any time.
struct stage_counters {
    word frames;           ///< commits
    word tombstones;       ///< frames forwarded (or produced) as tombstones
    word torn;             ///< status words that did not match
    word helped;           ///< commits of this stage's jobs by a consumer
    word revoked_commits;  ///< commits attempted after revocation and refused
    word busy_ns;          ///< time with at least one job in flight
    word wait_input_ns;    ///< no input available: the producer limits
    word wait_output_ns;   ///< no free output slot: a consumer limits
    word wait_own_ns;      ///< every lane is busy: this stage limits
    word wait_turn_ns;     ///< another stage holds the turn on the GPU
    word turns;            ///< turns taken on the GPU
    word late_turns;       ///< of these: taken over from a stage that was silent for too long
    word in_flight_high_water;
    word latency_max_ns;               ///< claim to commit
    word latency[latency_buckets];     ///< claim to commit, telemetry/histogram.hpp
    word handover[latency_buckets];    ///< producer's commit to this stage's lease
    word end_to_end[latency_buckets];  ///< sinks: source's claim to commit
    word end_to_end_max_ns;
    word from_capture[latency_buckets];  ///< sinks: the frame's capture to commit, if the source gave a
                                         ///< capture time
    word from_capture_max_ns;
};

struct stage_block {
    char name[48];
    u32 inputs;  ///< count
    u32 input_link[max_inputs];
    u32 input_group[max_inputs];
    u32 sampled_inputs;  ///< count of the rings from which it takes the newest frame, as a latest member
    u32 sampled_link[max_sampled_inputs];
    u32 outputs;                   ///< count; 0: a sink
    u32 output_link[max_outputs];  ///< none: the output has no ring
    u32 source;                    ///< index into control_block::source, or none
    u32 first_seat, seats;         ///< instances
    u32 in_flight;
    u32 max_attempts;
    u32 flags;             ///< stage_flag
    u64 frame_timeout_ns;  ///< how long one frame may be in process(), on the device, in finish(); 0: no
                           ///< limit
    alignas(own_page) doorbell_word doorbell;  ///< rung after every change that this stage may wait for
    alignas(own_page) stage_counters counters;
};
namespace stage_flag {
inline constexpr u32 owner_commits = 1;  ///< does host work after the event: never helped
inline constexpr u32 latest = 2;         ///< reads its input as a latest group
inline constexpr u32 optional = 4;
inline constexpr u32 ends = 8;    ///< a source that may end its stream: ring/stream_end.hpp
inline constexpr u32 skips = 16;  ///< its groups are closed while its seats are empty, then reopened
}  // namespace stage_flag

/// A seat: the instance slot of a stage. Successive processes occupy it, one epoch each.
struct seat_block {
    u32 stage, instance;
    u32 first_job, jobs;  ///< job words of this seat
    u32 first_epoch;      ///< epoch before the first holder's: incarnations of the seat are counted from it
    alignas(64) word current;      ///< ring/words.hpp: seat_word {epoch, entry}
    word paused;                   ///< 1: paused by the user, no deadline runs
    alignas(own_page) word fault;  ///< injected_fault.hpp: requested by the user; 0 none
    doorbell_word bell;            ///< rung when `current` changes: a standby sleeps on it
};

struct job_block {
    u32 seat;
    u32 reserved;
    word process_since_ns;  ///< 0 outside process(); set to 0 before OPEN
    word submitted_since_ns;
    sequence_word ring_sequence;  ///< of the frame that the job works on; for display and for the
                                  ///< supervisor's accounting
};

/// One process that occupies, occupied or will occupy a seat. Never overwritten while a word has its epoch.
struct alignas(own_page) incarnation {
    word identity;    ///< ring/words.hpp: entry_word {state, seat, epoch, pid}
    word start_time;  ///< /proc/PID/stat field 22: identifies the process uniquely together with the pid
    word heartbeat_ns;
    word commits;           ///< frames it committed, without tombstones
    word end_acknowledged;  ///< acknowledged_mark: has seen STOPPING while it held no lease
    word exit_note;         ///< why it ends, if it could record it: ring::note_exit, note_signal
    word events_published;  ///< 1: event handles are complete
    word live_since_ns;     ///< a standby: since when it has been ready to take over
    word cpu_ns;
    word first_commit_ns;  ///< when this incarnation committed its first frame; 0: not yet
    u32 device;            ///< device::device_kind
    u32 guard;             ///< memory_guard, once its rings are mapped; written by the process itself only
    word wild_write;       ///< target of a faulting write of this process, ring/wild_write.hpp; 0: unknown
    // What the process does now: CLOCK_MONOTONIC ns at which the activity began, 0: inactive. Written by the
    // process itself only, with plain stores; a word of a dead process keeps its last value and is not read
    // any more.
    word busy_since_ns;  ///< at least one frame is in flight; the stage's busy_ns already includes the time
                         ///< up to this moment
    word processing_since_ns;  ///< main thread: in process() of a frame
    word device_since_ns;      ///< the device works on the oldest submitted frame
    word finishing_since_ns;   ///< in finish() or the commit of a frame; of several frames the one that began
                               ///< first
    word paused_since_ns;      ///< the work above waits for an external event: none of its clocks runs
    word pause;                ///< pause_reason, written before paused_since_ns
    // How deep the process works, and why. For displays and for the other stages; no protocol step depends on
    // these words, and those of a dead process are ignored.
    word work_ns;         ///< recently measured device time per frame; 0: not measured yet
    word depth;           ///< telemetry/depth.hpp
    word last_commit_ns;  ///< when this process committed its newest frame, tombstones included; 0: none yet
};

/// More than one bit, so that a single flipped bit does not set it.
inline constexpr u64 acknowledged_mark = 0xE11D;

/// Whether a process could write to other processes' memory, to another frame, or into these words.
namespace memory_guard {
inline constexpr u32 mapped = 1;           ///< it has mapped its rings: the bits below are valid
inline constexpr u32 inputs_writable = 2;  ///< it could write to an input ring or another stage's asset
inline constexpr u32 output_gaps = 4;      ///< the gap after each slot of its outputs is not writable
inline constexpr u32 block_pages = 8;      ///< of the control block it can write only to its own pages
inline constexpr u32 block_keys = 16;  ///< and those only inside the ring's functions (shm/block_guard.hpp)
}  // namespace memory_guard

/// Why a process waits for something that is neither a frame nor its own fault.
enum class pause_reason : u64 {
    nothing = 0,
    disk_full = 1,
    link = 2,  ///< frames on another host, or that host's acknowledgement of them
};

/// A source's numbers: one lap word per window position.
struct source_block {
    u32 stage;
    u32 link;       ///< its output
    u32 first_lap;  ///< lap of number 0: 0, except in runs that exercise the wrap-around of laps
    u32 reserved;
    /// E, ring/stream_end.hpp: the job that claims that its number and all higher ones don't exist; 0: none
    alignas(own_page) word ended;
    word sequence_lease[max_window];
};

/// One set of parameters: immutable from its publication (when `state` counts it) until no frame needs it.
struct parameter_set {
    u64 from;    ///< the first frame that it applies to
    u64 number;  ///< sequence number of the run's changes; 0: the initial parameters
    alignas(8) std::byte value[max_parameter_bytes];
};
/// Parameters that can be changed during the run: ring/parameter_box.hpp.
struct parameter_box {
    u32 bytes;  ///< size of a set; 0: the pipeline has no parameters
    u32 reserved;
    alignas(own_page) word state;  ///< {parity:1, sets:23, horizon:40}
    alignas(own_page) parameter_set set[max_parameter_sets];
};

/// Turns on one GPU, ring/turn.hpp: a hint that no other word depends on.
struct turn_block {
    alignas(own_page) word token;
    word wanted;  ///< one bit per seat
};

struct control_block {
    word magic;  ///< stored last
    u32 version;
    u32 uid;
    u64 bytes;  ///< sizeof(control_block) of the process that created it
    char run_id[32];
    char pipeline[64];
    u64 created_ns;  ///< CLOCK_MONOTONIC
    u32 stages, seats, links, sources, jobs, assets;
    u32 width, height;
    u64 frame_timeout_ns, latest_lease_ns;
    f64 fps;                  ///< 0: not paced
    u64 first_ring_sequence;  ///< first sequence of this block's words (> 0 after a restart in the middle of
                              ///< a run)

    /// END: first sequence that will not exist; ring/words.hpp: end_unknown, end_stopping
    alignas(64) end_word end;
    word stop_asked;  ///< 1: the run was requested to end early
    word supervisor;  ///< low half: pid of the supervisor; high half: how it ended (telemetry/run_end.hpp)
    word supervisor_heartbeat_ns;
    word trace_until_ns;  ///< until then stages stamp every frame into the trace block (trace_block.hpp); 0:
                          ///< no trace was ever requested
    doorbell_word supervisor_doorbell;
    /// when the next frame is due: pacing by fps survives a source's death
    alignas(own_page) word next_source_ns;
    parameter_box parameters;

    stage_block stage[max_stages];
    seat_block seat[max_seats];
    link_block link[max_links];
    source_block source[max_sources];
    asset_block asset[max_assets];
    turn_block turn[max_turns];
    alignas(own_page) word job[max_jobs];  ///< J
    alignas(own_page) job_block job_info[max_jobs];
    incarnation entry[max_incarnations];
    alignas(own_page) std::byte event_handle[max_incarnations][max_slots][64];  ///< one page per incarnation

    frame_segment frames[max_links];  ///< last: from here on pages have different access rights
};

/// All except the frame segments. In those, only the headers of existing slots are backed by memory.
inline constexpr u64 word_bytes = offsetof(control_block, frames);
static_assert(word_bytes % frame_page == 0 && word_bytes < 4U << 20U);

/// Copies the words, for code that keeps a snapshot of a block; `to` may be in any memory.
inline void copy_words(control_block& to, const control_block& from) noexcept {
    std::memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), word_bytes);
}

}  // namespace carousel::shm
