#pragma once
// Kernel launches of a frame's own work: by name, and as a CUDA graph.

#include <cuda_runtime_api.h>

#include <memory>
#include <type_traits>

#include "device/backend.hpp"
#include "device/same_work.hpp"

namespace carousel::device::cuda {

// Named kernel launches on a queue. Named launches are used for a frame's own work, which a runner may run as
// a graph (device/same_work.hpp).

/// Launches a kernel on a CUDA queue; if a same_work is open on the queue, records the launch instead.
/// Returns the launch's error.
[[nodiscard]] cudaError_t launch(queue& q, const kernel_launch& k) noexcept(false);

/// Launches a kernel with its arguments by value, like <<<>>>.
template <typename... P>
[[nodiscard]] cudaError_t launch(queue& q, const char* name, void (*kernel)(P...), dim3 blocks, dim3 threads,
                                 u32 shared_bytes, bool overlaps,
                                 const std::type_identity_t<P>&... arguments) {
    static_assert(sizeof...(P) <= kernel_launch::most,
                  "too many arguments: use a kernel with fewer arguments, or pass them as a struct");
    kernel_launch k;
    k.name = name;
    k.kernel = reinterpret_cast<const void*>(kernel);
    k.blocks = {blocks.x, blocks.y, blocks.z};
    k.threads = {threads.x, threads.y, threads.z};
    k.shared_bytes = shared_bytes;
    k.overlaps = overlaps;
    ((k.arguments[k.count++] = {&arguments, static_cast<u32>(sizeof arguments)}), ...);
    return launch(q, k);
}

// A frame's work as a CUDA graph (device/same_work.hpp: purpose and threading). The graph is captured from
// the stream at the first frame, so that it runs the same work as the stream would have run. The captured
// work includes overlapping launches if CUDA can capture them (12.3 and later; with older versions the graph
// runs the launches one after another). The graph is a chain with one node per launch. Some later frames are
// captured for comparison. During these captures launch() itself enqueues nothing, so any captured node comes
// from work that bypassed launch().

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
