#pragma once
// The words of the slot protocol and the registers of the processes that work on them, as one plain struct of
// bytes: one value is one state of the model. Numbers are small (a frame, a generation, a version is one byte
// and never wraps).

#include <type_traits>

#include "core/types.hpp"

namespace carousel::model {

inline constexpr u8 none = 255;     ///< "no such index"; END: unknown
inline constexpr u8 spoiled = 254;  ///< a payload that is being overwritten; END: stopping

inline constexpr int max_jobs = 8, max_sources = 2, max_numbers = 4, max_links = 4, max_slots = 5,
                     max_groups = 4;
inline constexpr int max_consumers = 2, max_latest = 2, max_lanes = 6, max_inputs = 2, max_outputs = 2,
                     max_incarnations = 6, max_stages = 4;

enum class job_state : u8 { idle, open, submitted, committed, aborted, damaged = 15 };
enum class slot_state : u8 { free, fill, ready, quarantined, damaged = 15 };
enum class lease_state : u8 { wait, leased, done, skipped, damaged = 15 };
enum class process_state : u8 { unborn, running, dead };
enum class gpu_work : u8 { no, pending, half, done };  ///< half: the first output of two is written

/// J: authoritative for whether a stage's work on a frame happened.
struct job_word {
    u8 version, epoch;  ///< epoch: index of the incarnation
    job_state state;
    bool operator==(const job_word&) const = default;
};

/// C (generation: the slot's) and Q (generation: the lap of the number).
struct lease_word {
    u8 generation;
    lease_state state;
    u8 job, version;
    u8 attempts;  ///< bits 0..2: deaths that count; bit 3: lease by itself
    bool operator==(const lease_word&) const = default;
};
inline constexpr u8 alone_bit = 8;

/// S, with the header next to it and the content of its memory.
struct slot_word {
    u8 generation;
    slot_state state;
    u8 job, version;
    u8 ring_sequence;  ///< header
    u8 content;        ///< payload: the frame whose kernels have written it
    bool operator==(const slot_word&) const = default;
};

/// E: which job claims that a frame of a source, and all above it, do not exist.
struct claim_word {
    u8 frame, job, version;  ///< frame: none, or the first that doesn't exist
    bool operator==(const claim_word&) const = default;
};

/// The position of a lane (one job in flight of one incarnation) in a stage's step: named after its last
/// action.
enum class step : u8 {
    idle,
    opened,
    half_leased,
    leased,
    half_filled,
    filled,
    launched,
    submitted,
    committed,
    half_shown,
    shown,
    half_returned,
    returned,
    giving_back,
    abandoning,
    ended,  ///< its stream ends before its frame: claimed, the lane waits for END
    half_slot_back,
    slot_back,
    number_back
};

struct lane_registers {
    step at;
    gpu_work gpu;
    u8 job, version, frame;
    u8 flags;
};
inline constexpr u8 lane_tombstone = 1, lane_alone = 2;

/// A slot that a lane works on at one of its links.
struct slot_register {
    u8 slot, generation;
};

struct incarnation_state {
    process_state alive;
    u8 declared;        ///< DOOMED: its successor has started; it may continue as a zombie
    u8 fenced;          ///< none of its code runs and none of its writes arrive any more
    u8 self_inflicted;  ///< died of a frame that kills
    u8 acknowledged;    ///< has seen STOPPING with no lease in progress
};

struct helper_registers {
    u8 at, slot, job, version, epoch, generation;
    u8 event;  ///< the slot whose event it is, at the first output
};
struct viewer_registers {
    u8 at, slot, generation, frame, last, member;
};
struct freer_registers {
    u8 at, slot, generation, column, word_generation;
    lease_state word_state;
};
struct scan_registers {
    u8 position, job, version;
};

struct link_state {
    slot_word slot[max_slots];
    lease_word group[max_slots][max_groups];
    u8 tail;
    u8 consumed[max_consumers];  ///< next frame of each plain consumer
    viewer_registers viewer[max_latest];
    freer_registers freer;
};

struct state {
    job_word job[max_jobs];
    lease_word sequence_lease[max_sources][max_numbers];
    claim_word claim[max_sources];
    link_state link[max_links];
    lane_registers lane[max_lanes];
    slot_register input[max_lanes][max_inputs];
    slot_register output[max_lanes][max_outputs];
    incarnation_state incarnation[max_incarnations];
    /// By slots of the first output. 1: recorded and not fired; 0 reads as complete, as does one that was
    /// never recorded.
    u8 event_pending[max_incarnations][max_slots];
    helper_registers helper;
    scan_registers scan;
    u8 end;
    u8 forgot;  ///< a second supervisor that does not know the unfenced dead incarnations (seeded bug)
    u8 committed[max_stages];  ///< ghost: frames that each stage has committed, one bit each
    u8 damaged;                ///< the word that has a flipped bit (rules_damage.cpp), or none
    u8 damages;                ///< number of bits flipped so far
    u8 revoked;                ///< ghost: incarnations from which all words were taken
    u8 padding[7];             ///< zero: eight bytes can be read from any of the above
};
static_assert(std::is_trivially_copyable_v<state> && std::has_unique_object_representations_v<state>);

}  // namespace carousel::model
