#pragma once
// Stamps of every frame, for `carousel trace`: a ring of records a seat, in a shared memory object of its own
// beside the control block. It is made when a trace is asked for the first time;
// control_block::trace_until_ns says whether stages write.
//
// Who writes: the threads of the process that sits on the seat, and for a moment perhaps a predecessor that
// is being retired. A writer takes a number from `head` (fetch_add), then fills record [number %
// trace_records]. A record is whole exactly when its check word fits its number and its other words: no store
// needs another to have come first, and a writer that dies between any two of them, or that two writers meet
// in one record, leaves a record that is not whole. Readers pass such a record by. Who reads: anybody,
// read-only. Nothing here is waited for, and nothing that a reader does is seen by a writer.

#include "shm/control_block.hpp"

namespace carousel::shm {

inline constexpr u64 trace_magic = 0x4543'4152'5443'4143ULL;  // "CACTRACE"
inline constexpr u32 trace_version = 1;
inline constexpr u32 trace_records = 8192;  ///< a seat: most of a second at 2,000 frames/s
inline constexpr u32 trace_words = 7;

struct trace_record {
    word field[trace_words];  ///< telemetry/trace_ring.hpp
    word check;               ///< of the record's number and its fields
};

struct trace_ring {
    alignas(64) word head;  ///< number of the next record
    alignas(64) trace_record record[trace_records];
};

struct trace_block {
    word magic;  ///< stored last
    u32 version;
    u32 uid;
    u64 bytes;  ///< of the whole object
    u32 seats;  ///< rings behind this header
    u32 reserved;
    alignas(64) trace_ring ring[1];  ///< `seats` of them

    [[nodiscard]] static constexpr u64 bytes_for(u32 seats) noexcept {
        return sizeof(trace_block) + (u64{seats} - 1) * sizeof(trace_ring);
    }
};
static_assert(sizeof(trace_record) == 64);

}  // namespace carousel::shm
