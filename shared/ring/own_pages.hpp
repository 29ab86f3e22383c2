#pragma once
// Which pages of the control block the protocol's steps of one seat write: what its process opens, while all
// else is for reading (shm/block_guard.hpp).
//
//   S1, S4 to S6   the job words, which all seats share; the records of its own jobs
//   S2, S6, S7     the words of its input rings, or a source's numbers
//   S3, S6, S7     the words of its output rings; the headers of those rings
//   S5, helpers    the job words; the words of its input rings
//   sampled inputs    the words of their rings, as a latest member
//   S8             doorbells of the stages at its rings; with turns those of every stage
//   P1, E1         a source: which set counts, its claim, when its next frame is due
//   beside them    its entry and event handles, its stage's counters, what its seat is asked for,
//                  the state of assets that it loads, the token of the GPU on which it takes turns
//
// Read from the block's static parts, which are checked before use: nonsense there opens pages of nobody.

#include <array>
#include <span>

#include "ring/participants.hpp"
#include "shm/block_guard.hpp"

namespace carousel::ring {

class page_list {
public:
    /// The pages on which that object begins and ends.
    void add(const shm::control_block& c, const void* from, u64 bytes) noexcept;
    [[nodiscard]] std::span<const shm::page_range> pages() const noexcept {
        return std::span(ranges_).first(count_);
    }

private:
    std::array<shm::page_range, 128> ranges_{};
    u32 count_ = 0;
};

/// Of a stage's process, a standby, a port's program. `token`: the GPU's on which it takes turns, or none.
[[nodiscard]] page_list pages_of(const shm::control_block& c, const incarnation_id& id, u32 token) noexcept;
/// Of one that reads a ring as `latest` from outside (a viewer).
[[nodiscard]] page_list pages_of_reader(const shm::control_block& c, u32 link) noexcept;

}  // namespace carousel::ring
