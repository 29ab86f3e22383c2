#pragma once
// The holder's part in the mending of GPU words: it has no CUDA, so a short-lived program does it
// (gpu_hands).
//
// One mender at a time, over all lives of the holder, for a tally knows the last loss alone (words.hpp). Its
// process stands in the space before it is told to begin; the next one starts when it has ended, and a holder
// that takes over ends the one that it finds there first.
//
// clang-format off
// step                                   | a death of the holder right behind it leaves | who mends it
// the mender is started (mender_started) | a process that has heard nothing             | it ends with its socket
// its process is written (mender_named)  | the same                                     | the same
// it is told, and mends (mender_told)    | some words mended                            | the next mender, again
// it has said so (mender_heard)          | mended words, entries FENCED                 | the next one finds nothing
// the entries are FREE                   | nothing                                      |
// clang-format on
//
// One that is stopped before it is written down, and whose holder dies then, stays until it is continued: it
// has heard nothing, and ends. The order of the two words that name it is no rule: it is told behind both.

#include <optional>
#include <vector>

#include "ipc/memory.hpp"

namespace carousel::ipc {

inline constexpr u64 mender_patience_ns = 30'000'000'000, mender_rest_ns = 1'000'000'000;

class gpu_mending {
public:
    explicit gpu_mending(gpu_hands* hands) : hands_(hands) {}
    ~gpu_mending();
    gpu_mending(const gpu_mending&) = delete;
    gpu_mending& operator=(const gpu_mending&) = delete;

    /// The entry is FENCED, and mended but for its words on the GPU.
    void add(u32 entry, u32 epoch) { waiting_.push_back({entry, epoch}); }
    /// Of a mender that go_on() has started: to be watched; go_on() is called when one is readable, and now
    /// and then.
    [[nodiscard]] std::vector<const shm::unique_fd*> fresh();
    /// Does what can be done now. The entries that are mended.
    [[nodiscard]] std::vector<u32> go_on(memory& space, int gpu_fd);

private:
    struct life {
        u32 entry, epoch;
    };
    [[nodiscard]] bool ended_before(space_block& s) const;
    void start(memory& space, int gpu_fd);
    void trouble(const std::string& why);
    gpu_hands* hands_;
    std::vector<life> waiting_, mended_now_;
    std::optional<gpu_mender> mender_;
    bool is_fresh_ = false, said_done_ = false, told_trouble_ = false;
    u64 until_ns_ = 0, not_before_ns_ = 0;
};

}  // namespace carousel::ipc
