#pragma once
// Writes the states of a stage for checkpoints (run/checkpoint.hpp). The completion thread copies a state
// after the device is done with it and before the frame's commit: until then no process overwrites the slot.
// The file is written after the commit, because another process may still abandon the frame before; by
// another thread, so no frame waits for a disk.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "ring/worker.hpp"
#include "stages/runner/runtime.hpp"

namespace carousel::stages {

class checkpoint_writer {
public:
    explicit checkpoint_writer(runtime& r);
    /// Waits until the file that is being written is complete.
    ~checkpoint_writer();
    checkpoint_writer(const checkpoint_writer&) = delete;
    checkpoint_writer& operator=(const checkpoint_writer&) = delete;

    /// Copies the state of that job, if a checkpoint is due with it. While the file before is still being
    /// written, the checkpoint is left out. Completion thread.
    void before_commit(const ring::job& j);
    /// Writes the state that before_commit() has copied. Completion thread.
    void committed(const ring::job& j);
    /// To be called when every frame below `end` is committed, and the completion thread has ended. Writes
    /// the state before `end`, so that a run which was stopped there continues without making a frame again.
    /// Returns when the file is complete.
    void write_last(ring::link_ref& states, u64 end);

private:
    void write_loop();
    [[nodiscard]] bool copy_of(ring::link_ref& states, u64 frame);
    [[nodiscard]] int write(u64 frame);

    runtime* runtime_;
    std::unique_ptr<device::queue> queue_;
    std::unique_ptr<device::mapping> copy_;
    std::size_t bytes_;
    u64 layout_;
    bool copied_ = false;  ///< used by the completion thread
    u64 left_out_ = 0;     ///< the same
    std::mutex mutex_;     ///< guards the members below
    std::condition_variable changed_;
    u64 due_ = 0;  ///< the frame that continues from copy_; 0: there is nothing to write
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace carousel::stages
