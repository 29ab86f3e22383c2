#pragma once
// Timestamps of every frame, for `carousel trace`: one ring of records per seat, in a shared memory object
// separate from the control block. The object is created when a trace is first requested;
// control_block::trace_until_ns determines whether stages write.
//
// Writers: the threads of the process on the seat, and possibly for a short time a predecessor that is being
// retired. A writer takes a number from `head` (fetch_add), then fills record [number % trace_records]. A
// record is valid if and only if its check word matches its number and its other words, so the stores of a
// record may become visible in any order. If a writer dies between two stores, or two writers write to the
// same record, the record that is left is invalid. Readers skip such a record. Readers: any process,
// read-only. No process waits for these words, and a reader has no effect on a writer.

#include "shm/control_block.hpp"

namespace carousel::shm {

inline constexpr u64 trace_magic = 0x4543'4152'5443'4143ULL;  // "CACTRACE"
inline constexpr u32 trace_version = 1;
inline constexpr u32 trace_records = 8192;  ///< per seat: enough for most of a second at 2,000 frames/s
inline constexpr u32 trace_words = 7;

struct trace_record {
    word field[trace_words];  ///< telemetry/trace_ring.hpp
    word check;               ///< checksum over the record's number and its fields
};

struct trace_ring {
    alignas(64) word head;  ///< number of the next record
    alignas(64) trace_record record[trace_records];
};

struct trace_block {
    word magic;  ///< stored last
    u32 version;
    u32 uid;
    u64 bytes;  ///< of the entire object
    u32 seats;  ///< rings that follow this header
    u32 reserved;
    alignas(64) trace_ring ring[1];  ///< `seats` of them

    [[nodiscard]] static constexpr u64 bytes_for(u32 seats) noexcept {
        return sizeof(trace_block) + (u64{seats} - 1) * sizeof(trace_ring);
    }
};
static_assert(sizeof(trace_record) == 64);

}  // namespace carousel::shm
