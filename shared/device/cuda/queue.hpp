#pragma once
// A CUDA stream as a queue. Nothing in this class makes the stream wait for another process. The destructor
// returns at once; enqueued work still runs to its end.

#include <cuda_runtime_api.h>

#include "device/backend.hpp"
#include "device/cuda/devices.hpp"

namespace carousel::device::cuda {

class graph;

class queue final : public device::queue {
public:
    explicit queue(const gpu& on);
    ~queue() override;

    [[nodiscard]] device_kind kind() const noexcept override { return device_kind::cuda; }
    void copy(void* to, const void* from, u64 bytes) override;
    void fill(void* to, u8 value, u64 bytes) override;
    void status(const status_step& step) override;
    void drain() override;
    void fault() override;
    void submit(std::function<void(cpu::pool&)> task) override;
    [[nodiscard]] void* native_stream() const noexcept override { return stream_; }

    [[nodiscard]] cudaStream_t stream() const noexcept { return stream_; }
    [[nodiscard]] const std::string& label() const noexcept { return label_; }
    void bind() const { on_.bind(); }
    /// From now on launches are recorded in `work`, until this function is called with another graph or null.
    void open(graph* work) noexcept { open_ = work; }
    [[nodiscard]] graph* open_graph() const noexcept { return open_; }

private:
    const gpu& on_;
    std::string label_;
    cudaStream_t stream_ = nullptr;
    graph* open_ = nullptr;
};

// IPC events. A process records its own events and waits for them. Other processes import these events and
// only query them: if the owner is killed after it has recorded an event, that event never fires, and a
// stream that waits for it hangs forever. An event that was never recorded, or not yet recorded for this
// frame, reads as complete. An event is therefore queried only after the job word is SUBMITTED
// (ring/words.hpp). The owner does not wait for the shared event itself: cudaEventSynchronize on an
// interprocess event spins on a whole core regardless of the event's flags, and never returns once the
// context has faulted (seen on an H200, driver 580). So a second, private event with blocking sync is
// recorded immediately after the shared one: when the private event is complete, the shared one is complete,
// too.

class event final : public device::event {
public:
    explicit event(const gpu& on);
    ~event() override;
    void record(device::queue& on, u64 tag) override;
    [[nodiscard]] bool done() override;
    void wait() override;
    [[nodiscard]] handle export_handle() const override;

private:
    const gpu& on_;
    std::string label_;
    cudaEvent_t shared_ = nullptr;   ///< the event that other processes import
    cudaEvent_t private_ = nullptr;  ///< the event that this process waits for
};

class imported_event final : public device::imported_event {
public:
    /// Takes ownership of an opened event.
    imported_event(const gpu& on, cudaEvent_t opened) noexcept : on_(on), event_(opened) {}
    ~imported_event() override;
    [[nodiscard]] bool done(u64 tag) noexcept override;
    /// Returns null and logs a warning if CUDA refuses, because the process that created the event has died,
    /// or the event belongs to another GPU.
    [[nodiscard]] static std::unique_ptr<imported_event> open(const gpu& on,
                                                              const device::event::handle& from);

private:
    const gpu& on_;
    cudaEvent_t event_;
};

}  // namespace carousel::device::cuda
