#pragma once
// The CPU backend's queue: one worker thread that runs tasks in the order of their submission, using the
// context's pool for parallel loops. An idle worker sleeps. Enqueueing is a push under a mutex.
//
// Failure is sticky, as for a CUDA context: the first task that throws stops the queue, later tasks are
// dropped, and every record after it (and every later call) reports the failure as carousel::error. None of
// these records reads as complete. Lifetime: the destructor runs the pending entries; pointers and shared
// words passed to the queue must stay valid until then.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device/backend.hpp"
#include "device/cpu/event.hpp"
#include "device/cpu/pool.hpp"

namespace carousel::device::cpu {

class queue final : public device::queue {
public:
    explicit queue(std::shared_ptr<pool> threads);
    ~queue() override;

    [[nodiscard]] device_kind kind() const noexcept override { return device_kind::cpu; }
    void copy(void* to, const void* from, u64 bytes) override;
    void fill(void* to, u8 value, u64 bytes) override;
    void status(const status_step& step) override;
    void drain() override;
    void fault() override;
    void submit(std::function<void(pool&)> task) override;
    [[nodiscard]] void* native_stream() const noexcept override { return nullptr; }

    /// After all work enqueued so far: stores `tag` in `word` (unless null), then completes a new record of
    /// `on`.
    void record(const std::shared_ptr<fence>& on, std::atomic<u64>* word, u64 tag);

private:
    struct entry {
        std::function<void(pool&)> task;  // empty: a record
        std::shared_ptr<fence> on;
        std::atomic<u64>* word = nullptr;
        u64 tag = 0, number = 0;
    };
    void push(entry&& e);
    void run(entry& e);
    void work_loop();

    std::shared_ptr<pool> pool_;
    std::mutex mutex_;
    std::condition_variable work_;
    std::vector<entry> waiting_;  // swapped with the worker's own vector, so there are no allocations after
                                  // both have grown
    std::shared_ptr<const failure> failure_;
    bool sleeping_ = false, stop_ = false;
    std::thread worker_;
};

}  // namespace carousel::device::cpu
