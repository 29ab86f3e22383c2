#pragma once
// The holder's part in the mending of GPU words: it has no CUDA, so a short-lived program does it
// (gpu_helper).
//
// One mender at a time, over all lives of the holder, for a tally knows the last loss alone (words.hpp). Its
// process stands in the space before it is told to begin; the next one starts when it has ended, and a holder
// that takes over ends the one that it finds there first.
//
// clang-format off
// step                                   | a death of the holder right behind it leaves | who mends it
// the mender is started (repairer_started) | a process that has heard nothing             | it ends with its socket
// its process is written (repairer_named)  | the same                                     | the same
// it is told, and mends (repairer_notified)    | some words mended                            | the next mender, again
// it has said so (repairer_replied)          | mended words, entries FENCED                 | the next one finds nothing
// the entries are FREE                   | nothing                                      |
// clang-format on
//
// One that is stopped before it is written down, and whose holder dies then, stays until it is continued: it
// has heard nothing, and ends. The order of the two words that name it is no rule: it is told behind both.

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

    /// The entry is FENCED, and mended but for its words on the GPU.
    void add(u32 entry, u32 epoch) { waiting_.push_back({entry, epoch}); }
    /// Of a mender that advance() has started: to be watched; advance() is called when one is readable, and
    /// now and then.
    [[nodiscard]] std::vector<const shm::unique_fd*> fresh();
    /// Does what can be done now. The entries that are mended.
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
