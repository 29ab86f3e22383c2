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
    /// Records launches in `work` until another graph, or none, is open.
    void open(graph* work) noexcept { open_ = work; }
    [[nodiscard]] graph* open_graph() const noexcept { return open_; }

private:
    const gpu& on_;
    std::string label_;
    cudaStream_t stream_ = nullptr;
    graph* open_ = nullptr;
};

}  // namespace carousel::device::cuda
