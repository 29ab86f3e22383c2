#pragma once
// The seal of a frame's header: a sum over all that the frame carries beside its payload, as far as it is in
// use. Its producer writes it last, behind everything that a stage may have entered, and before SUBMITTED
// (release); whoever leases the frame compares it (READY was acquired) before it believes a field. A header
// that isn't as it was sealed is no frame: it is not leased, the supervisor's audit names it, and the frame
// is made anew.
//
// Each round maps its 64 bits one to one, so that a change of any bits within one 64-bit word of a header is
// always seen; changes of several words are overlooked once in 2^64. A worker compares it once more before
// its own frame is SUBMITTED, so that what has changed since the look is seen, too. Not seen are metadata,
// used extents and side frames that were wrong before the seal.
//
// Who may call: seal the owner of the FILL word; the rest anybody. A crash before SUBMITTED leaves a header
// that nobody reads. Costs a few multiplications: no byte that is not in use is read.

#include "shm/control_block.hpp"

namespace carousel::ring {

/// The sum. `parameter_bytes`: of a set, as the block says.
[[nodiscard]] u64 header_sum(const shm::frame_header& h, u32 parameter_bytes) noexcept;

inline void seal(shm::frame_header& h, u32 parameter_bytes) noexcept {
    h.seal = header_sum(h, parameter_bytes);
}

/// Whether the header is as it was sealed. Says nothing of a frame that isn't leased: look, lease, then use.
[[nodiscard]] bool is_sealed(const shm::frame_header& h, u32 parameter_bytes) noexcept;

}  // namespace carousel::ring
