#pragma once
// Events of the CPU backend. An event has two parts: a fence inside this process, on which wait() sleeps, and
// a word in shared memory next to the slot, which other processes compare with their expected tag.
//
// Sync point: the queue's worker stores the word with release after the last task's last write (parallel
// loops have joined by then), so a process that reads the tag with acquire reads the whole payload. Crash: a
// recorder that dies before that store never stores the tag, so its frame never reads as complete.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "device/backend.hpp"

namespace carousel::device::cpu {

/// The reason why a queue stopped working; the next call that queries the queue throws it as a
/// carousel::error.
struct failure {
    int code = 0;
    std::string message;
};

/// Counts the records of one event. Shared by the event and the records that are still queued, so either may
/// be destroyed first.
class fence {
public:
    u64 begin() noexcept;  ///< returns the number of the new record
    void complete(u64 number) noexcept;
    void fail(u64 number, std::shared_ptr<const failure> why) noexcept;
    [[nodiscard]] bool done();  ///< throws carousel::error if the queue of the record has failed
    void wait();                ///< likewise

private:
    void throw_if_failed() const;
    std::mutex mutex_;
    std::condition_variable changed_;
    u64 begun_ = 0, completed_ = 0;
    std::shared_ptr<const failure> failure_;
};

class event final : public device::event {
public:
    /// `shared` may be null; then only this process can query the event.
    explicit event(std::atomic<u64>* shared) : fence_(std::make_shared<fence>()), shared_(shared) {}
    void record(device::queue& on, u64 tag) override;
    [[nodiscard]] bool done() override { return fence_->done(); }
    void wait() override { fence_->wait(); }
    [[nodiscard]] handle export_handle() const override { return {}; }

private:
    std::shared_ptr<fence> fence_;
    std::atomic<u64>* shared_;
};

/// Compares the word in shared memory with the tag. Usable on any device: a GPU stage downstream of a CPU
/// stage polls it as well.
class imported_event final : public device::imported_event {
public:
    explicit imported_event(const std::atomic<u64>* shared) : shared_(shared) {}
    [[nodiscard]] bool done(u64 tag) noexcept override {
        return shared_->load(std::memory_order_acquire) == tag;
    }

private:
    const std::atomic<u64>* shared_;
};

}  // namespace carousel::device::cpu
