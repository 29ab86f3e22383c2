#pragma once
// finish() of several frames at once, for a stage that asks for it (description::finish_threads). Threads:
//   arrival     waits for the device's work of each submitted frame, in their order
//   finish      so many: each takes the oldest frame that has arrived and finishes it; one that finds none
//               takes parts of a frame which another one finishes (frame::in_parts)
// The completion thread waits for each frame's turn here, then records and commits: in order, and it alone.
// All that is shared is this process's own memory, so a death leaves nothing of it. What it leaves of the
// frames: those whose finish() had begun or ended and that were not committed are delivered again, up to
// in_flight of them, in place of one. That is why finish() is idempotent on the sequence. A process that was
// stopped anywhere in it and wakes late finds frame::is_ours() false for all of them.

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "stages/runner/frame_in_work.hpp"

namespace carousel::stages {

class finish_pool {
public:
    using step = std::function<void(frame_in_work&)>;
    /// `arrive` and `finish` end the process where they fail: they throw nothing. Throws std::system_error
    /// when a thread is refused.
    finish_pool(unsigned threads, step arrive, step finish);
    /// Nothing may be under way any more.
    ~finish_pool();
    finish_pool(const finish_pool&) = delete;
    finish_pool& operator=(const finish_pool&) = delete;

    /// Main thread: behind the frame's submission, before the completion thread hears of it.
    void submit(frame_in_work& f);
    /// Completion thread: until the frame is finished.
    void await(frame_in_work& f);
    /// From within finish(): see frame::in_parts.
    void run_parts(u32 parts, const std::function<void(u32)>& body);

private:
    /// Lives on the stack of the thread that waits for it; everything is guarded by mutex_.
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
    std::deque<loop*> open_;  ///< loops with parts that nobody has taken
    bool ending_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace carousel::stages
