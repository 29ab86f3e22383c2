#include "device/cuda/launch.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"
#include "device/cuda/check.hpp"
#include "device/cuda/queue.hpp"

namespace carousel::device::cuda {
namespace {

constexpr u64 compared_every = 256;

/// True if both the runtime and the driver can capture the stream's overlapping launches.
bool captures_overlap() noexcept {
#if CUDART_VERSION >= 12030
    static const bool can = [] {
        int version = 0;
        return cudaDriverGetVersion(&version) == cudaSuccess && version >= 12030;
    }();
    return can;
#else
    return false;
#endif
}

cudaError_t enqueue(cudaStream_t stream, const kernel_launch& k, bool overlaps) noexcept {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(k.blocks[0], k.blocks[1], k.blocks[2]);
    config.blockDim = dim3(k.threads[0], k.threads[1], k.threads[2]);
    config.dynamicSmemBytes = k.shared_bytes;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = overlaps ? 1 : 0;
    std::array<void*, kernel_launch::most> arguments{};
    for (u32 i = 0; i < k.count; ++i) arguments[i] = const_cast<void*>(k.arguments[i].at);
    return cudaLaunchKernelExC(&config, k.kernel, arguments.data());
}

/// Sets `next` to the node that follows `of` in a chain.
cudaError_t next_of(cudaGraphNode_t of, cudaGraphNode_t& next) noexcept {
    std::size_t count = 1;
#if CUDART_VERSION >= 13000
    cudaGraphEdgeData edge{};
    return cudaGraphNodeGetDependentNodes(of, &next, &edge, &count);
#elif CUDART_VERSION >= 12030
    cudaGraphEdgeData edge{};
    return cudaGraphNodeGetDependentNodes_v2(of, &next, &edge, &count);
#else
    return cudaGraphNodeGetDependentNodes(of, &next, &count);
#endif
}

}  // namespace

cudaError_t launch(device::queue& q, const kernel_launch& k) {
    CAROUSEL_ASSERT(q.kind() == device_kind::cuda);
    auto& own = static_cast<queue&>(q);
    own.bind();
    if (graph* open = own.open_graph(); open != nullptr) return open->launch(k);
    return enqueue(own.stream(), k, k.overlaps);
}

std::unique_ptr<same_work> make_graph(device::queue& on) {
    CAROUSEL_ASSERT(on.kind() == device_kind::cuda);
    return std::make_unique<graph>(static_cast<queue&>(on));
}

graph::~graph() {
    if (exec_ != nullptr) CAROUSEL_CUDA_LOG(cudaGraphExecDestroy(exec_));
    if (graph_ != nullptr) CAROUSEL_CUDA_LOG(cudaGraphDestroy(graph_));
}

void graph::begin() {
    queue_->bind();
    list_.begin();
    capturing_ = list_.frames() <= 2 || list_.frames() % compared_every == 0;
    if (capturing_)
        CAROUSEL_CUDA_RUN(queue_->label(),
                          cudaStreamBeginCapture(queue_->stream(), cudaStreamCaptureModeThreadLocal));
    queue_->open(this);
}

cudaError_t graph::launch(const kernel_launch& k) {
    list_.add(k);
    if (exec_ != nullptr) return cudaSuccess;
    return enqueue(queue_->stream(), k, k.overlaps && captures_overlap());
}

cudaGraph_t graph::end_capture() {
    cudaGraph_t captured = nullptr;
    CAROUSEL_CUDA_RUN(queue_->label(), cudaStreamEndCapture(queue_->stream(), &captured));
    capturing_ = false;
    return captured;
}

void graph::drop() {
    queue_->open(nullptr);
    if (capturing_) (void)cudaGraphDestroy(end_capture());
    list_.forget();
}

void graph::end() {
    queue_->open(nullptr);
    list_.end();
    if (capturing_) {
        const cudaGraph_t captured = end_capture();
        if (exec_ == nullptr) {
            graph_ = captured;
            build(captured);
        } else {
            refuse_others(captured);
        }
    }
    for (std::size_t k = 0; k < nodes_.size(); ++k) {
        launch_list::note& n = list_.all()[k];
        if (list_.first() || !n.changed) continue;
        cudaKernelNodeParams set{};
        set.func = const_cast<void*>(n.launch.kernel);
        set.gridDim = dim3(n.launch.blocks[0], n.launch.blocks[1], n.launch.blocks[2]);
        set.blockDim = dim3(n.launch.threads[0], n.launch.threads[1], n.launch.threads[2]);
        set.sharedMemBytes = n.launch.shared_bytes;
        set.kernelParams = n.arguments.data();
        CAROUSEL_CUDA_RUN(queue_->label(), cudaGraphExecKernelNodeSetParams(exec_, nodes_[k], &set));
        n.changed = false;
    }
    CAROUSEL_CUDA_RUN(queue_->label(), cudaGraphLaunch(exec_, queue_->stream()));
}

// Builds the graph from the capture of the first frame: one node per launch, each after the previous one.
void graph::build(cudaGraph_t captured) {
    std::size_t count = 0;
    CAROUSEL_CUDA_RUN(queue_->label(), cudaGraphGetNodes(captured, nullptr, &count));
    if (count != list_.all().size())
        throw error(
            exit_code::stage_exception,
            fmt::format("its work has {} launches by carousel::cuda::launch(), as well as {} copies, fills "
                        "or launches outside it; a stage with same_work must not have the latter",
                        list_.all().size(), count - std::min(count, list_.all().size())));
    if (count == 0) throw error(exit_code::stage_exception, "it declares same_work, but launches nothing");
    std::size_t roots = 1;
    nodes_.resize(count);
    CAROUSEL_CUDA_RUN(queue_->label(), cudaGraphGetRootNodes(captured, nodes_.data(), &roots));
    for (std::size_t k = 1; k < count; ++k)
        CAROUSEL_CUDA_RUN(queue_->label(), next_of(nodes_[k - 1], nodes_[k]));
    CAROUSEL_CUDA_RUN(queue_->label(), cudaGraphInstantiate(&exec_, captured, 0));
}

void graph::refuse_others(cudaGraph_t captured) {
    std::size_t count = 0;
    const cudaError_t asked = cudaGraphGetNodes(captured, nullptr, &count);
    CAROUSEL_CUDA_LOG(cudaGraphDestroy(captured));
    CAROUSEL_CUDA_RUN(queue_->label(), asked);
    if (count == 0) return;
    throw error(exit_code::stage_exception,
                fmt::format("its work differs from the first frame's, although configure() declares "
                            "same_work: {} copies, fills or launches outside carousel::cuda::launch()",
                            count));
}

}  // namespace carousel::device::cuda
