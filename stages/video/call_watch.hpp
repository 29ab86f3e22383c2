#pragma once
// Ends this process if a call of FFmpeg does not return, where no deadline of the run does so: before the
// first frame that is not committed is reached, and in the thread of a live input.

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "core/types.hpp"

namespace carousel::stages::video {

class call_watch {
public:
    /// `what`: for the message: "decoding clip.mp4".
    explicit call_watch(std::string what);
    ~call_watch();
    call_watch(const call_watch&) = delete;
    call_watch& operator=(const call_watch&) = delete;

    /// The calls that begin while this object exists are watched.
    class scope {
    public:
        explicit scope(call_watch& w) noexcept : watch_(&w) {
            w.calls_.fetch_add(1, std::memory_order_relaxed);
            w.active_.store(true, std::memory_order_relaxed);
        }
        ~scope() { watch_->active_.store(false, std::memory_order_relaxed); }
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;

    private:
        call_watch* watch_;
    };

private:
    void run();

    std::string what_;
    std::atomic<u64> calls_{0};
    std::atomic<bool> active_{false};
    std::mutex mutex_;
    std::condition_variable wake_;
    bool stop_ = false;
    std::thread thread_;
};

}  // namespace carousel::stages::video
