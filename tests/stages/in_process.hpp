#pragma once
// A run of real stages as threads of one process: real runners, heartbeats and connections to the supervisor,
// over one mapping of the control block and of ring memory, so that ThreadSanitizer sees races; and with
// events that behave as CUDA's, so that an ordering error shows that the CPU's events would hide.

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ring/topology.hpp"
#include "stages/runner/heartbeat.hpp"
#include "stages/runner/runtime.hpp"
#include "stages/runner/stage_runner.hpp"
#include "tests/support/scratch_folder.hpp"

namespace carousel::test {

/// One frame's value after `hops` stages.
[[nodiscard]] constexpr u64 value_of(u64 frame_number, u32 hops) {
    return hops == 0 ? frame_number * 1000 : value_of(frame_number, hops - 1) * 3 + 1;
}

/// A stage of numbers: a source makes sequence * 1000, the others 3 * in + 1. A sink counts the frames, and
/// those that are wrong or out of order.
class counting_stage final : public carousel::stage {
public:
    counting_stage(bool source, bool sink, u32 hops, u32 work_us, u64 ends_at = ~u64{0})
        : source_(source), sink_(sink), hops_(hops), work_us_(work_us), ends_at_(ends_at) {}
    [[nodiscard]] carousel::description configure(const carousel::configuration& with) override;
    void load_asset(std::string_view, std::span<std::byte> memory, carousel::environment&) override {
        std::fill(memory.begin(), memory.end(), std::byte{7});
    }
    void prepare(carousel::environment& env) override;
    void process(carousel::frame& f) override;
    [[nodiscard]] bool commits_on_host() const override { return sink_ || at_finish; }
    void finish(carousel::frame& f) override;
    [[nodiscard]] bool ready(u64 frame_number, u64 done_below) override {
        return !at_ready || at_ready(frame_number, done_below);
    }
    void committed(u64 frame_number) override {
        if (at_committed) at_committed(frame_number);
    }

    std::atomic<u64> frames{0}, wrong{0};
    u32 finish_threads = 1;                           ///< with more than one a sink doesn't check the order
    std::function<void(carousel::frame&)> at_finish;  ///< in finish(), before a sink counts the frame
    std::function<bool(u64, u64)> at_ready;
    std::function<void(u64)> at_committed;
    std::function<void()> at_process;
    std::function<void(carousel::frame&)> at_frame;     ///< in process(), before its work is enqueued
    u64 wild_write_at = ~u64{0}, wild_write_bytes = 0;  ///< threads_of_a_run::options

private:
    bool source_, sink_;
    u32 hops_, work_us_;
    u64 ends_at_;
    std::vector<std::unique_ptr<u64>> seen_;
};

/// The requests of one stage to its queue.
struct queue_counts {
    std::atomic<u32> status_steps{0};
    std::atomic<u32> copies{0};
    std::function<void()> at_copy;  ///< called by the requesting thread, before the copy
};

/// The state of a CUDA event in other processes: complete unless the work of its last record is in progress.
struct event_state {
    std::atomic<u64> recorded{0}, completed{0};
};

/// Objects that the processes of a run would share, created once.
class shared_memory {
public:
    /// A context over the CPU with these mappings. `as_cuda`: its events read as complete until they are
    /// recorded, and again when they have been recorded for a later frame whose work is done; helpers may
    /// query them from any thread. `own`: it maps the memory itself, as a process does.
    [[nodiscard]] std::unique_ptr<device::context> open(bool as_cuda, queue_counts* counts = nullptr,
                                                        bool own = false);
    [[nodiscard]] std::byte* at(const device::memory_handle& handle);
    /// State of a new CUDA-like event, valid as long as this object. An importer polls an event after its
    /// exporter has destroyed it, as with CUDA, where the driver keeps the state.
    [[nodiscard]] event_state& make_event_state();

private:
    std::mutex mutex_;
    std::map<int, std::unique_ptr<device::mapping>> known_;
    std::deque<event_state> events_;  ///< its elements never move
};

/// source -> ... -> sink, `stages` of them.
class threads_of_a_run {
public:
    struct options {
        u32 stages = 3;
        u64 frames = 100;
        u32 work_us = 0;
        bool as_cuda = false;
        u64 ends_at = ~u64{0};   ///< the source ends its stream before that frame
        u32 finish_threads = 1;  ///< of the sink
        u32 every = 1;           ///< of the sink
        std::function<void(carousel::frame&)> at_finish = {};
        stages::depth_rule depth = {};
        bool peer_rings = false;  ///< each ring counts as one of another device
        std::vector<std::pair<u32, u32>> sampled_links =
            {};                 ///< {stage, the stage whose newest frame it takes}
        bool canaries = false;  ///< after the slots of each ring
        u64 wild_write_at =
            ~u64{0};  ///< the source's frame at which it writes `wild_write_bytes` past its slot
        u64 wild_write_bytes = 0;
        shm::block_guard guard = shm::block_guard::off;  ///< of each process, in run_as_processes()
        bool own_mappings = false;  ///< each stage maps rings and assets itself, read-only where it should
        bool asset = false;         ///< the source makes "table", of bytes 7
        std::function<void(u32 stage, stages::runtime&)> at_prepared = {};
    };
    explicit threads_of_a_run(const options& o);
    ~threads_of_a_run();
    threads_of_a_run(const threads_of_a_run&) = delete;
    threads_of_a_run& operator=(const threads_of_a_run&) = delete;

    [[nodiscard]] shm::control_block& control() const noexcept { return *block_; }
    [[nodiscard]] shared_memory& memory() noexcept { return memory_; }
    [[nodiscard]] counting_stage& sink() const noexcept { return *made_.back(); }
    [[nodiscard]] counting_stage& source() const noexcept { return *made_.front(); }
    [[nodiscard]] counting_stage& stage(u32 k) const noexcept { return *made_[k]; }
    [[nodiscard]] u64 value_in(u32 link, u32 slot) const;
    /// The bytes after the payload of that frame in the ring.
    [[nodiscard]] std::byte* after_slot(u32 link, u64 frame_number);
    /// The counts of each stage's queue.
    [[nodiscard]] queue_counts& counts(u32 stage) const noexcept { return *counts_[stage]; }
    [[nodiscard]] std::string directory() const { return folder_.path.string(); }
    /// Runs all stages to the end of the run; each has its own heartbeat and connection to the supervisor,
    /// whose ends are `supervisor`.
    void run();
    /// The same with one process per stage, which closes the control block to itself by `guard`. Returns true
    /// if all have left properly, and if the sink has seen every frame intact.
    [[nodiscard]] bool run_as_processes();

    std::vector<shm::unique_fd> supervisor;  ///< the other ends of the stages' connections

private:
    [[nodiscard]] stages::attachment attachment_for(u32 stage);
    void live(u32 stage);
    void begin_together() noexcept;

    options options_;
    std::atomic<u32> begun_{0};
    scratch_folder folder_;
    shm::private_block block_;  ///< its pages are shared with the forked processes
    shared_memory memory_;
    ring::frame_format format_;
    std::vector<device::memory_handle> rings_;
    device::memory_handle table_;  ///< the asset's; fd -1: there is none
    std::vector<std::unique_ptr<counting_stage>> made_;
    std::vector<std::unique_ptr<queue_counts>> counts_;
    std::vector<ring::incarnation_id> incarnations_;
    std::vector<shm::unique_fd> lines_;
};

}  // namespace carousel::test
