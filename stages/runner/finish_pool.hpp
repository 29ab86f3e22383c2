#pragma once
// Runs finish() of several frames concurrently, for a stage that requests this (description::finish_threads).
// Threads:
//   arrival     waits for the device's work of each submitted frame, in order
//   finish      N threads: each takes the oldest frame that has arrived and finishes it; a thread that finds
//               none takes parts of a frame that another thread finishes (frame::in_parts)
// The completion thread waits for each frame's turn here, then records and commits the frame. No other thread
// does this, so frames stay in order. All shared state is process-local memory, so a crash leaves nothing of
// it. After a crash, every frame whose finish() had begun or ended is delivered again unless it was
// committed: up to in_flight frames with a pool, and one frame without a pool. That is why finish() is
// idempotent per sequence. If a process was stopped in finish() and continues late, frame::is_owned() returns
// false for all these frames.

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "core/clock.hpp"
#include "shm/block_guard.hpp"
#include "shm/control_block.hpp"
#include "stages/runner/frame_in_work.hpp"

namespace carousel::stages {

class finish_pool {
public:
    using step = std::function<void(frame_in_work&)>;
    /// `arrive` and `finish` must not throw; on failure they end the process. Throws std::system_error if a
    /// thread cannot be started.
    finish_pool(unsigned threads, step arrive, step finish);
    /// No frame may be in progress.
    ~finish_pool();
    finish_pool(const finish_pool&) = delete;
    finish_pool& operator=(const finish_pool&) = delete;

    /// Called by the main thread after the frame's submission, before the completion thread receives the
    /// frame.
    void submit(frame_in_work& f);
    /// Called by the completion thread: waits until the frame is finished.
    void await(frame_in_work& f);
    /// Called from finish(): see frame::in_parts.
    void run_parts(u32 parts, const std::function<void(u32)>& body);

private:
    /// Stored on the stack of the thread that waits for the loop; mutex_ guards all members.
    struct loop {
        u32 count;
        const std::function<void(u32)>* body;
        u32 next = 0, done = 0;
        std::exception_ptr failure = nullptr;
        std::condition_variable over = {};
    };
    using held_lock = std::unique_lock<std::mutex>;

    void end() noexcept;
    void arrival_loop();
    void finish_loop();
    void take_part(held_lock& lock, loop& of);
    void close(loop& l);

    step arrive_, finish_;
    std::mutex mutex_;
    std::condition_variable submitted_changed_, work_, finished_;
    std::deque<frame_in_work*> submitted_, arrived_;
    std::deque<loop*> open_;  ///< the loops that still have parts for threads to take
    bool ending_ = false;
    std::vector<std::thread> threads_;
};

// One clock in the process's entry, for host work that several threads may do at the same time. The clock
// runs from the start of the oldest piece of work in progress. So a piece of work that hangs exceeds its own
// deadline, whatever other work starts and ends concurrently, and the time of one piece is never counted as
// the time of another piece.

class finish_clock {
public:
    explicit finish_clock(shm::word& since_ns) noexcept : since_ns_(&since_ns) {}

    /// A piece of work is in progress while this object exists. Any thread.
    class running {
    public:
        explicit running(finish_clock& of) : of_(&of), number_(of.begin()) {}
        ~running() { of_->end(number_); }
        running(const running&) = delete;
        running& operator=(const running&) = delete;

    private:
        finish_clock* of_;
        u64 number_;
    };

    /// Sets the start time of all work in progress to now.
    void restart() noexcept {
        const std::lock_guard lock(mutex_);
        const u64 now = now_ns();
        for (auto& [number, since] : under_way_) since = now;
        publish();
    }

private:
    u64 begin() {
        const std::lock_guard lock(mutex_);
        under_way_.emplace(++last_, now_ns());
        publish();
        return last_;
    }
    void end(u64 number) noexcept {
        const std::lock_guard lock(mutex_);
        under_way_.erase(number);
        publish();
    }
    // Numbers increase with time, so the first element of the map began first.
    void publish() noexcept {
        const shm::block_open open;
        since_ns_->store(under_way_.empty() ? 0 : under_way_.begin()->second, std::memory_order_release);
    }

    shm::word* since_ns_;
    std::mutex mutex_;  ///< process-local
    u64 last_ = 0;
    std::map<u64, u64> under_way_;  ///< maps a number to its start time in ns
};

}  // namespace carousel::stages
