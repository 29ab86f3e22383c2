#pragma once
// Writes the states of a stage for checkpoints (run/checkpoint.hpp). The completion thread copies a state
// after the device is done with it and before the frame's commit: until then no process overwrites the slot.
// The file is written after the commit, because another process may still abandon the frame before; by
// another thread, so no frame waits for a disk. But if another host keeps its frames until a checkpoint has
// them, no state may be left out: then a frame becomes READY after its file is complete.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "ring/worker.hpp"
#include "shm/fd_socket.hpp"
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
    /// Writes the state of that job, if another host may wait for it (run::most_every_of_link). To be called
    /// between S5 and S6; may be repeated. Throws disk_full_error, output_error. Completion thread.
    void write_awaited(const ring::job& j);
    /// To be called while no frame is in flight, after each search for the next frame: writes such a state if
    /// a predecessor has died before it was complete. Throws as write_awaited() does.
    void write_missing(ring::link_ref& states);
    /// To be called when every frame below `end` is committed, and the completion thread has ended. Writes
    /// the state before `end`, so that a run which was stopped there continues without making a frame again.
    /// Returns when the file is complete.
    void write_last(ring::link_ref& states, u64 end);

private:
    void write_loop();
    [[nodiscard]] bool is_due(u64 frame) const;
    [[nodiscard]] bool is_awaited() const;
    [[nodiscard]] bool copy_of(ring::link_ref& states, u64 frame);
    [[nodiscard]] int write(u64 frame);
    void require_written(u64 frame);

    runtime* runtime_;
    std::unique_ptr<device::queue> queue_;
    std::unique_ptr<device::mapping> copy_;
    shm::unique_fd folder_;  ///< marked, so that no other run writes there when the supervisor has ended
    std::size_t bytes_;
    u64 layout_;
    bool copied_ = false;  ///< used by the completion thread
    u64 left_out_ = 0;     ///< the same
    u64 complete_ = 0;     ///< the newest frame that write_missing() has found or made complete
    std::mutex mutex_;     ///< guards the members below
    std::condition_variable changed_;
    u64 due_ = 0;  ///< the frame that continues from copy_; 0: there is nothing to write
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace carousel::stages
