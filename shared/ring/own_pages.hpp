#pragma once
// Determines the pages of the control block to which one seat writes in the protocol. The seat's process
// opens these pages for writing; all other pages are mapped read-only (shm/block_guard.hpp).
//
//   S1, S4 to S6   the job words, which all seats share; the records of its own jobs
//   S2, S6, S7     the words of its input rings, or a source's numbers
//   S3, S6, S7     the words of its output rings; the headers of those rings
//   S5, helpers    the job words; the words of its input rings
//   sampled inputs    the words of their rings, as a latest member
//   S8             doorbells of the stages at its rings; with turns those of every stage
//   P1, E1         a source: the parameters' state word, its claim, when its next frame is due
//   in addition    its entry and event handles, its stage's counters, requests to its seat, the state of
//                  assets that it loads, the token of the GPU on which it takes turns
//
// The pages are derived from the block's static parts, which are checked before use: an invalid index in them
// opens no page.

#include <array>
#include <span>

#include "ring/participants.hpp"
#include "shm/block_guard.hpp"

namespace carousel::ring {

class page_list {
public:
    /// Adds the pages that contain the `bytes` bytes at `from`.
    void add(const shm::control_block& c, const void* from, u64 bytes) noexcept;
    [[nodiscard]] std::span<const shm::page_range> pages() const noexcept {
        return std::span(ranges_).first(count_);
    }

private:
    std::array<shm::page_range, 128> ranges_{};
    u32 count_ = 0;
};

/// Returns the pages to which a stage's process, a standby or a port's program writes. `token`: the token of
/// the GPU on which the stage takes turns, or none.
[[nodiscard]] page_list pages_of(const shm::control_block& c, const incarnation_id& id, u32 token) noexcept;
/// Returns the pages to which a process outside the pipeline (a viewer) writes when it reads a ring as a
/// `latest` member.
[[nodiscard]] page_list pages_of_reader(const shm::control_block& c, u32 link) noexcept;

}  // namespace carousel::ring
