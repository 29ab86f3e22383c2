#pragma once
// The holder's part in the repair of words in GPU memory. The holder does not use CUDA, so it starts a
// short-lived process that repairs these words (gpu_helper).
//
// Only one repair process runs at a time, over all incarnations of the holder, because a tally records only
// the last loss (words.hpp). The id of that process is stored in the space before the process gets its
// instructions. The next repair process starts when that process has ended. When a holder takes the space
// over, it first ends the process whose id is stored in the space.
//
// clang-format off
// step                                      | a crash of the holder right after it | repaired by
//                                           | leaves                               |
// the process is started (repairer_started) | a process without instructions       | it ends with its socket
// its id is stored (repairer_named)         | the same                             | the same
// it gets its instructions, repairs         | some words repaired                  | the next repair process,
//   (repairer_notified)                     |                                      | from the start
// it has replied (repairer_replied)         | repaired words, entries FENCED       | the next one, which finds no damage
// the entries are FREE                      | nothing                              |
// clang-format on
//
// If a repair process is stopped before its id is stored, and the holder then dies, the process remains until
// it is continued; then it exits, because it has no instructions. The two words of its id (pid and start
// time) may be stored in either order, because the process gets its instructions only after both are stored.

#include <optional>
#include <vector>

#include "ipc/memory.hpp"

namespace carousel::ipc {

inline constexpr u64 repairer_timeout_ns = 30'000'000'000, repairer_retry_ns = 1'000'000'000;

class gpu_repair {
public:
    explicit gpu_repair(gpu_helper* helper) : helper_(helper) {}
    ~gpu_repair();
    gpu_repair(const gpu_repair&) = delete;
    gpu_repair& operator=(const gpu_repair&) = delete;

    /// Adds a FENCED entry: all words of its client are repaired, except those on the GPU.
    void add(u32 entry, u32 epoch) { waiting_.push_back({entry, epoch}); }
    /// Returns descriptors of repair processes that advance() has started. The caller must poll them. The
    /// caller must call advance() when one of these descriptors is readable, and also periodically.
    [[nodiscard]] std::vector<const shm::unique_fd*> fresh();
    /// Does all work that is possible now, without waiting. Returns the entries whose repair is complete.
    [[nodiscard]] std::vector<u32> advance(memory& space, int gpu_fd);

private:
    struct incarnation {
        u32 entry, epoch;
    };
    [[nodiscard]] bool ended_before(space_block& s) const;
    void start(memory& space, int gpu_fd);
    void report_failure(const std::string& why);
    gpu_helper* helper_;
    std::vector<incarnation> waiting_, in_repair_;
    std::optional<gpu_repairer> repairer_;
    bool is_fresh_ = false, done_reported_ = false, failure_reported_ = false;
    u64 until_ns_ = 0, not_before_ns_ = 0;
};

}  // namespace carousel::ipc
