#pragma once
// The control block: all state that the processes of one run share, in one Boost.Interprocess shared memory
// object.
//
// May be accessed by any process of the run's user. This header defines the layout only; the algorithms are
// in ring/. Words are lock-free 64-bit atomics; the block holds no lock, no pointer and no allocator, so a
// process may die at any instruction. Lifetime: created by the supervisor (segment.hpp), removed by it at the
// end of the run or by `carousel clean`. Static parts (names, topology, sizes) are written before `magic` is
// stored (release) and do not change after that. Job, slot, group and source words are changed only by CAS;
// ring/words.hpp defines their fields and ring/ the legal transitions. Every index and size read from the
// block is checked before use: a faulty process may have written any value.
//
// Access rights apply to whole pages, so words of different writers lie on different pages (`own_page`): no
// page contains both words that only the supervisor writes and words of a stage, seat, ring, source, asset or
// incarnation. A stage maps the block read-only and then makes writable only the pages to which its own seat
// writes in the protocol (ring/own_pages.hpp), so a wild write to any other page faults the process that
// makes the write. The job words of all seats share a page, since consumers commit for their producers.
//
// The words are followed by one frame segment per ring: the headers of its slots (frame_header.hpp), writable
// only by the ring's producer.

#include <atomic>
#include <cstddef>
#include <cstring>
#include <tuple>

#include "core/types.hpp"
#include "shm/frame_header.hpp"
#include "shm/number_word.hpp"

namespace carousel::shm {

inline constexpr u64 control_magic = 0x4c45'5355'4f52'4143ULL;  // "CAROUSEL"
/// Layout version of this block and of the files that several processes of a run write (ledgers). A program
/// of another version cannot attach.
inline constexpr u32 control_version = 23;

inline constexpr u32 max_stages = 32;
inline constexpr u32 max_seats = 64;  ///< instances of all stages
inline constexpr u32 max_links = 32;  ///< one link per output of a stage
inline constexpr u32 max_window = 48;
inline constexpr u32 max_inputs = 4;
inline constexpr u32 max_outputs = 4;
inline constexpr u32 max_blocking = 8;  ///< groups 0..7 of a link
inline constexpr u32 max_latest = 8;    ///< groups 8..15 of a link, which members join and leave at run time
inline constexpr u32 max_groups = max_blocking + max_latest;
inline constexpr u32 max_jobs = 512;
inline constexpr u32 max_incarnations = 192;
inline constexpr u32 max_sources = 8;
inline constexpr u32 max_assets = 16;
inline constexpr u32 max_turns = 16;  ///< maximum number of GPUs on which stages take turns
inline constexpr u32 latency_buckets = 256;
inline constexpr u32 max_parameter_sets = 64;  ///< a power of two above max_window

/// Alignment of data whose writer differs from the writer of the data before it.
inline constexpr u64 own_page = frame_page;

/// The reaction to a wrong value in a field that is written once (ring/check): a field that no process acts
/// on is restored in place. A process may have acted on any other field, so the block is rebuilt.
enum class when_wrong : u8 { restore, rebuild };

/// A field that is written once. Such fields are listed only in the tables that follow the structs below;
/// check and repair iterate over these tables.
template <typename Member>
struct static_field {
    const char* name;
    Member at;  ///< pointer to the member
    when_wrong then;
};
template <typename Member>  // clang deduces the arguments of aggregates only from version 17 on
static_field(const char*, Member, when_wrong)->static_field<Member>;

/// A futex on which processes sleep, see doorbell.hpp. Bit 0 is set if a process sleeps. The other bits count
/// how often the doorbell was rung.
struct alignas(64) doorbell_word {
    std::atomic<u32> value;
};

/// The ring of one output of a stage.
struct link_block {
    char name[48];                ///< name of the producing stage, or STAGE.OUTPUT
    u32 stage;                    ///< producing stage
    u32 slots;                    ///< buffers, <= max_slots
    u32 window;                   ///< N: the number of sequences beyond the tail that may be in flight
    u32 blocking;                 ///< number of blocking groups: groups 0 .. blocking-1 are in use
    u32 group_stage[max_groups];  ///< consuming stage of a blocking group
    u64 slot_bytes;  ///< bytes per slot; device/backend.hpp (mapping::slot) describes the positions of the
                     ///< slots
    u64 latest_lease_ns;  ///< time after which a latest member's lease may be revoked
    u32 memory;           ///< device::memory_kind
    u32 memory_ready;
    std::byte ipc_handle[64];  ///< memory kind ipc: cudaIpcMemHandle_t

    alignas(own_page) tail_word tail;  ///< T: all blocking groups are done with every position below T
    word group_state[max_groups];      ///< ring/words.hpp: group_state_word
    word lease_since_ns[max_groups];   ///< for latest groups: the time when the member's current lease began
    /// number of frames that the group did not get, because the group is a latest group or was closed
    word skipped[max_groups];
    alignas(64) word slot[max_slots];
    alignas(64) word group[max_slots][max_groups];
    word event_tag[max_slots];  ///< for CPU events: the tag of the completed job; used only in the ring of a
                                ///< stage's first output
    word committed;             ///< frames committed into this link
    /// the time when the frame in the slot was committed, as observed by its owner or a helper; used only for
    /// latencies
    word committed_ns[max_slots];
};
inline constexpr std::tuple link_fields{
    static_field{"name", &link_block::name, when_wrong::restore},
    static_field{"stage", &link_block::stage, when_wrong::rebuild},
    static_field{"slots", &link_block::slots, when_wrong::rebuild},
    static_field{"window", &link_block::window, when_wrong::rebuild},
    static_field{"blocking", &link_block::blocking, when_wrong::rebuild},
    static_field{"group_stage", &link_block::group_stage, when_wrong::restore},
    static_field{"slot_bytes", &link_block::slot_bytes, when_wrong::rebuild},
    static_field{"latest_lease_ns", &link_block::latest_lease_ns, when_wrong::rebuild},
    static_field{"memory", &link_block::memory, when_wrong::restore},
    static_field{"memory_ready", &link_block::memory_ready, when_wrong::restore},
    static_field{"ipc_handle", &link_block::ipc_handle, when_wrong::restore}};

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
inline constexpr std::tuple asset_fields{
    static_field{"name", &asset_block::name, when_wrong::rebuild},
    static_field{"bytes", &asset_block::bytes, when_wrong::rebuild},
    static_field{"maker_stage", &asset_block::maker_stage, when_wrong::rebuild},
    static_field{"memory", &asset_block::memory, when_wrong::restore},
    static_field{"ipc_handle", &asset_block::ipc_handle, when_wrong::restore}};

/// Counters of a stage, summed over its instances and incarnations. Changed by relaxed adds; any process may
/// read them at any time.
struct stage_counters {
    word frames;           ///< commits
    word tombstones;       ///< frames forwarded (or produced) as tombstones
    word torn;             ///< number of status words that did not match
    word helped;           ///< number of this stage's jobs that were committed by a consumer
    word revoked_commits;  ///< number of commits that were attempted after revocation, and refused
    word busy_ns;          ///< time with at least one job in flight
    word wait_input_ns;    ///< time without available input: the producer is the limit
    word wait_output_ns;   ///< time without a free output slot: a consumer is the limit
    word wait_own_ns;      ///< time in which every lane is busy: this stage is the limit
    word wait_turn_ns;     ///< time in which another stage holds the turn on the GPU
    word turns;            ///< turns taken on the GPU
    word late_turns;       ///< number of these turns that were taken over from a stage that was silent for
                           ///< too long
    word in_flight_high_water;
    word latency_max_ns;               ///< claim to commit
    word latency[latency_buckets];     ///< claim to commit, telemetry/histogram.hpp
    word handover[latency_buckets];    ///< time from the producer's commit to this stage's lease
    word end_to_end[latency_buckets];  ///< for sinks: time from the source's claim to the commit
    word end_to_end_max_ns;
    word from_capture[latency_buckets];  ///< for sinks: time from the frame's capture to the commit, if the
                                         ///< source gave a capture time
    word from_capture_max_ns;
};

struct stage_block {
    char name[48];
    u32 inputs;  ///< count
    u32 input_link[max_inputs];
    u32 input_group[max_inputs];
    u32 sampled_inputs;  ///< number of rings from which the stage takes the newest frame, as a latest member
    u32 sampled_link[max_sampled_inputs];
    u32 outputs;                   ///< count; 0: a sink
    u32 output_link[max_outputs];  ///< none: the output has no ring
    u32 source;                    ///< index into control_block::source, or none
    u32 first_seat, seats;         ///< instances
    u32 in_flight;
    u32 max_attempts;
    /// the stage's groups take only frames whose sequence is a multiple of this number; 1: all frames
    u32 every;
    u32 flags;             ///< stage_flag
    u64 frame_timeout_ns;  ///< time limit for one frame, which applies separately to process(), to the work
                           ///< on the device and to finish(); 0: no limit
    alignas(own_page) doorbell_word doorbell;  ///< rung after every change that this stage may wait for
    alignas(own_page) stage_counters counters;
};
inline constexpr std::tuple stage_fields{
    static_field{"name", &stage_block::name, when_wrong::restore},
    static_field{"inputs", &stage_block::inputs, when_wrong::rebuild},
    static_field{"input_link", &stage_block::input_link, when_wrong::rebuild},
    static_field{"input_group", &stage_block::input_group, when_wrong::rebuild},
    static_field{"sampled_inputs", &stage_block::sampled_inputs, when_wrong::rebuild},
    static_field{"sampled_link", &stage_block::sampled_link, when_wrong::rebuild},
    static_field{"outputs", &stage_block::outputs, when_wrong::rebuild},
    static_field{"output_link", &stage_block::output_link, when_wrong::rebuild},
    static_field{"source", &stage_block::source, when_wrong::rebuild},
    static_field{"first_seat", &stage_block::first_seat, when_wrong::rebuild},
    static_field{"seats", &stage_block::seats, when_wrong::rebuild},
    static_field{"in_flight", &stage_block::in_flight, when_wrong::rebuild},
    static_field{"max_attempts", &stage_block::max_attempts, when_wrong::rebuild},
    static_field{"every", &stage_block::every, when_wrong::rebuild},
    static_field{"flags", &stage_block::flags, when_wrong::rebuild},
    static_field{"frame_timeout_ns", &stage_block::frame_timeout_ns, when_wrong::restore}};
namespace stage_flag {
/// The stage does host work after the event, so no helper commits its jobs.
inline constexpr u32 owner_commits = 1;
inline constexpr u32 latest = 2;  ///< the stage reads its input as a latest group
inline constexpr u32 optional = 4;
inline constexpr u32 ends = 8;    ///< a source that may end its stream: ring/stream_end.hpp
inline constexpr u32 skips = 16;  ///< the stage's groups are closed while its seats are empty, and reopened
                                  ///< when a seat is occupied
inline constexpr u32 state = 32;  ///< the stage's last output is the ring of its states (ring/worker.hpp)
}  // namespace stage_flag

/// A seat: the instance slot of a stage. Successive processes occupy the seat, one epoch each.
struct seat_block {
    u32 stage, instance;
    u32 first_job, jobs;  ///< job words of this seat
    u32 first_epoch;      ///< the epoch that precedes the first holder's epoch; incarnations of the seat are
                          ///< counted from this epoch
    alignas(64) word current;      ///< ring/words.hpp: seat_word {epoch, entry}
    word paused;                   ///< 1: paused by the user, no deadline runs
    alignas(own_page) word fault;  ///< a requested fault: injected_fault.hpp; 0: none
    doorbell_word bell;            ///< rung when `current` changes, because a standby sleeps on it
};
inline constexpr std::tuple seat_fields{
    static_field{"stage", &seat_block::stage, when_wrong::rebuild},
    static_field{"instance", &seat_block::instance, when_wrong::rebuild},
    static_field{"first_job", &seat_block::first_job, when_wrong::rebuild},
    static_field{"jobs", &seat_block::jobs, when_wrong::rebuild},
    static_field{"first_epoch", &seat_block::first_epoch, when_wrong::restore}};

struct job_block {
    u32 seat;
    u32 reserved;
    word process_since_ns;  ///< 0: not inside process(); it is set to 0 before OPEN
    word submitted_since_ns;
    sequence_word ring_sequence;  ///< sequence of the frame that the job works on; for display and for the
                                  ///< supervisor's accounting
};
inline constexpr std::tuple job_fields{static_field{"seat", &job_block::seat, when_wrong::rebuild}};

/// One process that occupies, occupied or will occupy a seat. This entry is never overwritten while a word
/// contains its epoch.
struct alignas(own_page) incarnation {
    word identity;    ///< ring/words.hpp: entry_word {state, seat, epoch, pid}
    word start_time;  ///< /proc/PID/stat field 22: identifies the process uniquely together with the pid
    word heartbeat_ns;
    word commits;           ///< number of frames that the incarnation committed, not counting tombstones
    word end_acknowledged;  ///< acknowledged_mark: the process has read STOPPING while it was not in the
                            ///< middle of a lease
    word exit_note;  ///< the reason why the process ended, if the process could record it: ring::note_exit,
                     ///< note_signal
    word events_published;  ///< 0: event handles are not complete; otherwise 1 + the generation of the
                            ///< MPS domain of the events (ring/event_domain.hpp)
    word live_since_ns;     ///< for a standby: the time since which it has been ready to take over
    word cpu_ns;
    word first_commit_ns;  ///< the time when this incarnation committed its first frame; 0: not yet
    u32 device;            ///< device::device_kind
    u32 guard;  ///< bits of memory_guard; only the process itself writes them, after it has mapped its rings
    word wild_write;  ///< target of a faulting write of this process, ring/exit_notes.hpp; 0: unknown
    // The present activities of the process: CLOCK_MONOTONIC ns at which the activity began; 0: inactive.
    // Written only by the process itself, with plain stores; the words of a dead process keep their last
    // values and are no longer read.
    word busy_since_ns;  ///< at least one frame is in flight; the stage's busy_ns already includes the time
                         ///< up to this moment
    word processing_since_ns;  ///< the main thread is in process() of a frame
    word device_since_ns;      ///< the device works on the oldest submitted frame
    /// a frame is in finish() or is being committed; if there are several such frames, the time is that of
    /// the first
    word finishing_since_ns;
    /// the work described above waits for an external event, so none of its clocks runs
    word paused_since_ns;
    word pause;  ///< pause_reason, written before paused_since_ns
    // The present depth of the process, and the reason for it. Used for displays and by the other stages; no
    // protocol step depends on these words, and the words of a dead process are ignored.
    word work_ns;         ///< recently measured device time per frame; 0: not measured yet
    word depth;           ///< telemetry/depth.hpp
    word waiting;         ///< ring/words.hpp: wait_word; 0: a frame is in progress, or may begin
    word last_commit_ns;  ///< the time when this process committed its newest frame, including tombstones; 0:
                          ///< none yet
};

/// The mark has several bits set, so that a single flipped bit cannot produce it.
inline constexpr u64 acknowledged_mark = 0xE11D;

/// Flags that show whether a process could write to memory of other processes, to another frame's memory, or
/// to the control block.
namespace memory_guard {
inline constexpr u32 mapped = 1;           ///< the process has mapped its rings: the bits below are valid
inline constexpr u32 inputs_writable = 2;  ///< the process could write to an input ring or to another stage's
                                           ///< asset
inline constexpr u32 output_gaps = 4;      ///< the gap after each slot of its outputs is not writable
inline constexpr u32 block_pages = 8;      ///< in the control block the process can write only to its own
                                           ///< pages
inline constexpr u32 block_keys = 16;      ///< the process can write to its own pages only inside the ring's
                                           ///< functions (shm/block_guard.hpp)
}  // namespace memory_guard

/// The reason for a pause of a process: the process waits neither for a frame of a ring nor because of its
/// own error.
enum class pause_reason : u64 {
    nothing = 0,
    disk_full = 1,
    link = 2,  ///< frames on another host, or that host's acknowledgement of frames
};

/// A source's numbers: one lap word per window position.
struct source_block {
    u32 stage;
    u32 link;       ///< its output
    u32 first_lap;  ///< lap of number 0; the value is 0, except in runs that test the wrap-around of laps
    u32 reserved;
    /// E, ring/stream_end.hpp: a job's claim that the stream ends before the number of the job; 0: none
    alignas(own_page) word ended;
    word sequence_lease[max_window];
};
inline constexpr std::tuple source_fields{
    static_field{"stage", &source_block::stage, when_wrong::rebuild},
    static_field{"link", &source_block::link, when_wrong::rebuild},
    static_field{"first_lap", &source_block::first_lap, when_wrong::rebuild}};

/// One set of parameters: immutable from its publication (when `state` includes it) until no frame needs it.
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

/// Stages take turns on one GPU (ring/turn.hpp). These words are a hint on which no other word depends.
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
    u64 frame_timeout_ns;
    f64 fps;                  ///< 0: not paced
    u64 first_ring_sequence;  ///< first sequence in this block's words (> 0 after a restart in the middle of
                              ///< a run)

    /// END: first sequence that does not exist; ring/words.hpp: end_unknown, end_stopping
    alignas(64) end_word end;
    word stop_asked;  ///< 1: an early end of the run was requested
    word supervisor;  ///< low half: pid of the supervisor; high half: end of the run (telemetry/snapshot.hpp)
    word supervisor_heartbeat_ns;
    word trace_until_ns;  ///< until this time stages record timestamps of every frame in the trace block
                          ///< (trace_block.hpp); 0: no trace was ever requested
    doorbell_word supervisor_doorbell;
    /// for each source the time when its next frame is due, so that pacing by fps survives its death
    alignas(own_page) word next_source_ns[max_sources];
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

    frame_segment frames[max_links];  ///< must be the last member, because the pages from here on have
                                      ///< different access rights
};
inline constexpr std::tuple head_fields{
    static_field{"version", &control_block::version, when_wrong::restore},
    static_field{"uid", &control_block::uid, when_wrong::restore},
    static_field{"bytes", &control_block::bytes, when_wrong::restore},
    static_field{"run_id", &control_block::run_id, when_wrong::restore},
    static_field{"pipeline", &control_block::pipeline, when_wrong::restore},
    static_field{"created_ns", &control_block::created_ns, when_wrong::restore},
    static_field{"stages", &control_block::stages, when_wrong::rebuild},
    static_field{"seats", &control_block::seats, when_wrong::rebuild},
    static_field{"links", &control_block::links, when_wrong::rebuild},
    static_field{"sources", &control_block::sources, when_wrong::rebuild},
    static_field{"jobs", &control_block::jobs, when_wrong::rebuild},
    static_field{"assets", &control_block::assets, when_wrong::rebuild},
    static_field{"width", &control_block::width, when_wrong::restore},
    static_field{"height", &control_block::height, when_wrong::restore},
    static_field{"frame_timeout_ns", &control_block::frame_timeout_ns, when_wrong::restore},
    static_field{"fps", &control_block::fps, when_wrong::rebuild},
    static_field{"first_ring_sequence", &control_block::first_ring_sequence, when_wrong::rebuild}};

/// Size of all members except the frame segments. In the frame segments, only the headers of existing slots
/// are backed by memory.
inline constexpr u64 word_bytes = offsetof(control_block, frames);
static_assert(word_bytes % frame_page == 0 && word_bytes < 4U << 20U);

/// Copies the words of a block, for code that keeps a snapshot of the block; `to` may be in any memory.
inline void copy_words(control_block& to, const control_block& from) noexcept {
    std::memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), word_bytes);
}

}  // namespace carousel::shm
