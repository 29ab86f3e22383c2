#pragma once
// The CPU as a device. The memory of this device is in memfds; each of its queues has one worker, and all
// queues share one pool.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/backend.hpp"
#include "device/cpu/pool.hpp"

namespace carousel::device::cpu {

class context final : public device::context {
public:
    /// `threads` is the number of threads of the pool; 0: one per core. Throws device_error.
    /// `simulates_gpu`: for tests; the device fails when a GPU would (device_failure.hpp).
    explicit context(unsigned threads, bool simulates_gpu = false);

    [[nodiscard]] device_kind kind() const noexcept override { return device_kind::cpu; }
    [[nodiscard]] std::string description() const override;
    [[nodiscard]] std::unique_ptr<device::queue> make_queue() override;
    [[nodiscard]] std::unique_ptr<device::event> make_event(std::atomic<u64>* shared) override;
    [[nodiscard]] std::unique_ptr<device::imported_event> import_event(
        device_kind from, const device::event::handle& handle, const std::atomic<u64>* shared) override;
    [[nodiscard]] std::unique_ptr<mapping> map(const memory_handle& handle, access wanted) override;
    [[nodiscard]] std::unique_ptr<mapping> allocate(u64 bytes) override;
    [[nodiscard]] std::unique_ptr<mapping> allocate_host(u64 bytes) override { return allocate(bytes); }

private:
    std::shared_ptr<pool> pool_;
    bool simulates_gpu_ = false;
};

// Events of the CPU backend. An event has two parts: a fence inside this process and a word in shared memory
// next to the slot. wait() sleeps on the fence; other processes compare the word with their expected tag. A
// fence is completed by a thread of its own process, so no death of another process can delay wait(). If the
// work never ends, the supervisor kills this process after frame_timeout_ms. Memory order: the queue's worker
// stores the word with release after the last write of the last task (its parallel loops have ended by then),
// so a process that reads the tag with acquire reads the whole payload. Crash: a process that dies before
// that store never stores the tag, so its frame never reads as complete.

/// The reason why a queue stopped working; the next call that queries the queue throws it as a
/// carousel::error.
struct failure {
    int code = 0;
    std::string message;
};

/// Counts the records of one event. The event and its records that are still queued share this object, so the
/// event may be destroyed before its records, and vice versa.
class fence {
public:
    u64 begin() noexcept;  ///< returns the number of the new record
    void complete(u64 number) noexcept;
    void fail(u64 number, std::shared_ptr<const failure> why) noexcept;
    [[nodiscard]] bool done();  ///< throws carousel::error if the queue of that record has failed
    void wait();                ///< throws like done()

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

/// Compares the word in shared memory with the tag. A stage on any device can use it, for example a GPU stage
/// downstream of a CPU stage.
class imported_event final : public device::imported_event {
public:
    explicit imported_event(const std::atomic<u64>* shared) : shared_(shared) {}
    [[nodiscard]] bool done(u64 tag) noexcept override {
        return shared_->load(std::memory_order_acquire) == tag;
    }

private:
    const std::atomic<u64>* shared_;
};

// The CPU backend's queue: one worker thread that runs tasks in the order of their submission, using the
// context's pool for parallel loops. An idle worker sleeps. Enqueuing locks a mutex and appends an entry to a
// vector. A failure is permanent, as for a CUDA context: the first task that throws stops the queue, and
// later tasks are dropped. Every record after that task, and every later call, reports the failure as
// carousel::error. None of these records reads as complete. Lifetime: the destructor runs the pending
// entries; pointers and shared words passed to the queue must stay valid until then.

class queue final : public device::queue {
public:
    explicit queue(std::shared_ptr<pool> threads, bool simulates_gpu = false);
    ~queue() override;

    [[nodiscard]] device_kind kind() const noexcept override { return device_kind::cpu; }
    void copy(void* to, const void* from, u64 bytes) override;
    void fill(void* to, u8 value, u64 bytes) override;
    void status(const status_step& step) override;
    void drain() override;
    void fault() override;
    void submit(std::function<void(pool&)> task) override;
    [[nodiscard]] void* native_stream() const noexcept override { return nullptr; }

    /// Enqueues a record. After all work enqueued so far, the worker stores `tag` in `word` (unless `word` is
    /// null), and then completes a new record of `on`.
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
    std::vector<entry> waiting_;  // swapped with the worker's own vector, so that neither vector allocates
                                  // once both have grown
    std::shared_ptr<const failure> failure_;
    bool sleeping_ = false, stop_ = false;
    const bool simulates_gpu_;
    std::thread worker_;
};

}  // namespace carousel::device::cpu
