#pragma once
// A frame's work as a CUDA graph (device/same_work.hpp: purpose and threading). The graph is captured from
// the stream at the first frame, so that it equals what the stream would have run, including overlapping
// launches where CUDA can capture them (12.3 and later; otherwise the graph runs them one after another). It
// has one node per launch, in a chain.
//
// At frames that are captured for comparison the launches themselves are not enqueued, so any node in the
// capture bypassed launch().

#include <cuda_runtime_api.h>

#include <memory>

#include "device/same_work.hpp"

namespace carousel::device::cuda {

class queue;

[[nodiscard]] std::unique_ptr<same_work> make_graph(device::queue& on);

class graph final : public same_work {
public:
    explicit graph(queue& on) : queue_(&on) {}
    ~graph() override;
    void begin() override;
    void end() override;
    void drop() override;
    /// Handles a launch between begin() and end().
    [[nodiscard]] cudaError_t launch(const kernel_launch& k);

private:
    void build(cudaGraph_t captured);
    void refuse_others(cudaGraph_t captured);
    [[nodiscard]] cudaGraph_t end_capture();

    queue* queue_;
    launch_list list_;
    bool capturing_ = false;
    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t exec_ = nullptr;
    std::vector<cudaGraphNode_t> nodes_;  ///< one per launch
};

}  // namespace carousel::device::cuda
