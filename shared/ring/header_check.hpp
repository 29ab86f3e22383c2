#pragma once
// The seal of a frame's header: a checksum over all of the frame's data that is in use, except its payload.
// The producer writes the seal last, after all data that a stage may have entered and before SUBMITTED
// (release); a process that leases the frame compares the seal (READY was acquired) before it trusts a field.
// A frame whose header does not match its seal is not leased; the supervisor's audit reports it, and the
// block is rebuilt, so that the frame is made again.
//
// Each round maps its 64 bits one to one, so a change of any bits within one 64-bit word of a header is
// always detected; changes of several words are missed with probability 2^-64. A worker compares the seals of
// its inputs once more before its own frame is SUBMITTED, which detects changes since the first check. Values
// that are already wrong when the seal is computed (metadata, used extents, sequences of sampled frames) are
// not detected.
//
// seal() is called by the owner of the FILL word; the other functions by any process. A crash before
// SUBMITTED leaves a header that no process reads. The cost is a few multiplications, because only bytes in
// use are read.

#include "shm/control_block.hpp"

namespace carousel::ring {

/// The checksum. `parameter_bytes`: the size of a parameter set, as given in the block.
[[nodiscard]] u64 header_sum(const shm::frame_header& h, u32 parameter_bytes) noexcept;

inline void seal(shm::frame_header& h, u32 parameter_bytes) noexcept {
    h.seal = header_sum(h, parameter_bytes);
}

/// Returns true if the header matches its seal. The result is meaningful only for a frame that is leased
/// afterwards: first check, then lease, then use the frame.
[[nodiscard]] bool is_sealed(const shm::frame_header& h, u32 parameter_bytes) noexcept;

}  // namespace carousel::ring
