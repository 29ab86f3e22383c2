#pragma once
// The attachment of this process to a space: its epoch, the mapped memory, and a thread that writes the
// heartbeat and keeps the connection to the holder. When the holder has ended, the thread connects to the
// next holder and sends the memory to that holder.
//
// If the process crashes, words with its epoch remain; the holder repairs these words after the fence. If the
// process exits normally, it first unmaps the memory and then reports to the holder that the memory is
// unmapped. The report also serves as the fence, unless kernels of this process may still run
// (fence_by_exit). If no holder receives the report, the fence is the exit of the process, which is not
// counted as a death (note_leaving).
//
// Any thread may call these functions; place() sends one request at a time, guarded by a mutex that is local
// to this process.

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/errors.hpp"
#include "core/process.hpp"
#include "ipc/memory.hpp"
#include "ipc/place.hpp"
#include "shm/process_fd.hpp"

namespace carousel::ipc {

/// No process holds the space; a later attempt may succeed.
class no_holder : public config_error {
public:
    using config_error::config_error;
};

class attachment {
public:
    /// Waits at most wait_s for a holder. Throws no_holder if there is none (the text names what is missing).
    /// Throws shm_error if the holder refuses the attachment, or if memory::map throws it.
    attachment(const std::string& name, f64 wait_s);
    ~attachment();
    attachment(const attachment&) = delete;
    attachment& operator=(const attachment&) = delete;

    [[nodiscard]] space_block& block() const { return memory_->block(); }
    [[nodiscard]] u32 epoch() const noexcept { return epoch_; }
    [[nodiscard]] u32 entry() const noexcept { return entry_; }
    /// Descriptor of the space's host memory.
    [[nodiscard]] int memory_fd() const noexcept { return memory_->fd(); }
    /// Descriptor of the space's GPU memory; -1: the space has none.
    [[nodiscard]] int gpu_fd() const noexcept { return gpu_fd_.get(); }
    /// Address at which this process has mapped the GPU memory; null: it is not mapped. Set by the code that
    /// maps the memory (cuda/).
    std::atomic<std::byte*> gpu_base{nullptr};
    /// Called when this process can no longer guarantee that none of its work writes to the space. From then
    /// on, the process counts as fenced only when it has exited.
    void fence_by_exit() noexcept { leaves_orderly_ = false; }
    /// False in a forked child, which has no mapping and must not give back objects that its parent holds.
    [[nodiscard]] bool is_here() const noexcept { return owner_.is_this(); }
    [[nodiscard]] bool held() const noexcept { return held_.load(std::memory_order_acquire); }
    /// Returns the place of the primitive. If the primitive does not exist, waits up to wait_s until the
    /// holder has created it. Throws config_error if the primitive has another shape or if there is no room
    /// for it; no_holder if it can't be created because there is no holder.
    [[nodiscard]] u32 place(const std::string& name, const shape& wanted);

private:
    [[nodiscard]] bool try_attach(u64 until_ns, std::string& problem);
    void hold_lock();
    [[nodiscard]] bool try_return();
    void run_heartbeat();

    std::string name_;
    hold_place place_;
    f64 wait_s_;
    std::unique_ptr<memory> memory_;
    shm::unique_fd gpu_fd_;
    u32 epoch_ = 0, entry_ = no_entry;
    std::mutex mutex_;  // guards socket_
    /// A forked child has neither of these descriptors. Other processes detect by this lock that this process
    /// has the memory (ipc/place.hpp).
    shm::process_fd socket_, lock_;
    shm::process_fd
        end_;  ///< an eventfd that wakes the heartbeat thread, so that the end does not wait for it
    owner_process owner_;
    std::atomic<bool> held_{false}, ends_{false}, leaves_orderly_{true};
    std::thread heartbeat_thread_;
};

}  // namespace carousel::ipc
