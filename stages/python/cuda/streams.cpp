#include "stages/python/streams.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "device/cuda/check.hpp"

namespace carousel::python {
namespace {

constexpr const char* label = "carousel for Python";

cudaStream_t stream_of(void* s) { return static_cast<cudaStream_t>(s); }

/// One event serves all joins: a stream that was told to wait keeps what was recorded then.
cudaEvent_t join_event() {
    static thread_local cudaEvent_t event = [] {
        cudaEvent_t made = nullptr;
        CAROUSEL_CUDA_RUN(label, cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
        return made;
    }();
    return event;
}

/// cuCtxRecordEvent and cuCtxGetCurrent; null where the driver has none.
struct context_events {
    decltype(&::cuCtxRecordEvent) record = nullptr;
    decltype(&::cuCtxGetCurrent) current = nullptr;
};

#if CUDART_VERSION >= 12050
template <typename Function>
void find(Function& into, const char* name, unsigned since) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult answer = cudaDriverEntryPointSymbolNotFound;
    if (cudaGetDriverEntryPointByVersion(name, &found, since, cudaEnableDefault, &answer) == cudaSuccess &&
        answer == cudaDriverEntryPointSuccess)
        into = reinterpret_cast<Function>(found);
    (void)cudaGetLastError();  // a driver without it is no failure
}
#endif

const context_events& events_of_contexts() {
    static const context_events api = [] {
        context_events found;
#if CUDART_VERSION >= 12050
        find(found.record, "cuCtxRecordEvent", 12050);
        find(found.current, "cuCtxGetCurrent", 12000);
#endif
        return found;
    }();
    return api;
}

bool record_context(cudaEvent_t event) {
    const context_events& api = events_of_contexts();
    CUcontext context = nullptr;
    return api.record != nullptr && api.current != nullptr && api.current(&context) == CUDA_SUCCESS &&
           context != nullptr && api.record(context, event) == CUDA_SUCCESS;
}

}  // namespace

int current_gpu() {
    int gpu = -1;
    CAROUSEL_CUDA_RUN(label, cudaGetDevice(&gpu));
    return gpu;
}

void follow(void* follower, void* leader) {
    if (follower == leader) return;
    CAROUSEL_CUDA_RUN(label, cudaEventRecord(join_event(), stream_of(leader)));
    CAROUSEL_CUDA_RUN(label, cudaStreamWaitEvent(stream_of(follower), join_event(), 0));
}

bool join_all(void* stream, const std::vector<void*>& named) {
    if (record_context(join_event())) {
        CAROUSEL_CUDA_RUN(label, cudaStreamWaitEvent(stream_of(stream), join_event(), 0));
        return true;
    }
    // An event on the legacy default stream waits for all streams that block with it.
    follow(stream, cudaStreamLegacy);
    for (void* other : named) follow(stream, other);
    return false;
}

void copy_to_host(void* to, const void* from, u64 bytes, void* stream) {
    CAROUSEL_CUDA_RUN(label, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(stream)));
    CAROUSEL_CUDA_RUN(label, cudaStreamSynchronize(stream_of(stream)));
}

void copy_on_device(void* to, const void* from, u64 bytes, void* stream) {
    CAROUSEL_CUDA_RUN(label, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(stream)));
}

}  // namespace carousel::python
