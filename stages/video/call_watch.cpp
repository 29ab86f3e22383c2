#include "stages/video/call_watch.hpp"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "core/errors.hpp"
#include "core/log.hpp"

namespace carousel::stages::video {
namespace {

// Counted and not measured: a process that was stopped or frozen counts no intervals meanwhile.
constexpr std::chrono::milliseconds interval{250};
constexpr u32 most_intervals = 40;

}  // namespace

call_watch::call_watch(std::string what) : what_(std::move(what)), thread_([this] { run(); }) {}

call_watch::~call_watch() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

void call_watch::run() {
    u64 seen = 0;
    u32 intervals = 0;
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, interval, [this] { return stop_; })) {
        const u64 call = calls_.load(std::memory_order_relaxed);
        intervals = active_.load(std::memory_order_relaxed) && call == seen ? intervals + 1 : 0;
        seen = call;
        if (intervals < most_intervals) continue;
        log::error("{} has not returned for 10 s: this process ends, so that its successor can continue",
                   what_);
        ::_exit(exit_code::stage_exception);
    }
}

}  // namespace carousel::stages::video
