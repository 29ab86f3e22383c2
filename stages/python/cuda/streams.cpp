#include "stages/python/streams.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <map>

#include "device/backend.hpp"
#include "device/cuda/check.hpp"
#include "device/cuda/devices.hpp"

namespace carousel::python {
namespace {

constexpr const char* label = "carousel for Python";

cudaStream_t stream_of(void* s) { return static_cast<cudaStream_t>(s); }

/// One event per thread and GPU (the current one) serves all joins on that GPU, because a stream that waits
/// for the event keeps the state recorded at that time. The event belongs to this process and is recorded
/// just before each wait, so the death of another process can't leave it unsignalled.
cudaEvent_t join_event(int gpu) {
    static thread_local std::map<int, cudaEvent_t> events;
    cudaEvent_t& event = events[gpu];
    if (event == nullptr) CAROUSEL_CUDA_RUN(label, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

/// Driver functions, found by name at run time: the toolkit of this build may be older than the driver, and
/// lack their declarations. Null if the driver does not have the function.
struct context_calls {
    CUresult(CUDAAPI* record_event)(CUcontext, CUevent) = nullptr;  ///< drivers since CUDA 12.5
    CUresult(CUDAAPI* context_of)(CUstream, CUcontext*) = nullptr;
    CUresult(CUDAAPI* device)(CUdevice*) = nullptr;  ///< of the current context
};

template <typename Function>
void find(Function& into, const char* name, unsigned since) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult answer = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t code =
        cudaGetDriverEntryPointByVersion(name, &found, since, cudaEnableDefault, &answer);
#else
    // cudaGetDriverEntryPoint() takes no version, so it is used only to find the driver's own lookup
    // function, which accepts every version.
    using search = CUresult(CUDAAPI*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
    void* call = nullptr;
    cudaError_t code = cudaGetDriverEntryPoint("cuGetProcAddress", &call, cudaEnableDefault, &answer);
    if (code == cudaSuccess && answer == cudaDriverEntryPointSuccess && call != nullptr) {
        auto seen = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        const bool is_found =
            reinterpret_cast<search>(call)(name, &found, static_cast<int>(since), 0, &seen) == CUDA_SUCCESS &&
            seen == CU_GET_PROC_ADDRESS_SUCCESS;
        answer = is_found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    }
#endif
    if (code == cudaSuccess && answer == cudaDriverEntryPointSuccess)
        into = reinterpret_cast<Function>(found);
    (void)cudaGetLastError();  // it is not an error if the driver lacks the function
}

const context_calls& calls_of_contexts() {
    static const context_calls api = [] {
        context_calls found;
        // For tests: behaves as with a driver older than 12.5.
        if (std::getenv("CAROUSEL_TEST_NO_CONTEXT_EVENTS") == nullptr)
            find(found.record_event, "cuCtxRecordEvent", 12050);
        find(found.context_of, "cuStreamGetCtx", 12000);
        find(found.device, "cuCtxGetDevice", 12000);
        return found;
    }();
    return api;
}

bool record_context(cudaEvent_t event) {
    const context_calls& api = calls_of_contexts();
    const CUcontext context = device::cuda::current_context();
    return api.record_event != nullptr && context != nullptr &&
           api.record_event(context, event) == CUDA_SUCCESS;
}

/// Makes a GPU the thread's current GPU while this object exists. If the thread had no current GPU, this GPU
/// stays current after the object is destroyed, because returning to the runtime's default would create a
/// context on GPU 0.
class on_gpu {
public:
    explicit on_gpu(int gpu) {
        if (gpu >= 0) CAROUSEL_CUDA_RUN(label, cudaSetDevice(gpu));
    }

private:
    device::kept_thread kept_;
};

/// Returns the GPU that the driver reports; -1: the driver can't report it.
int gpu_of_context(void* stream) {
    const context_calls& api = calls_of_contexts();
    CUcontext context = nullptr;
    if (api.context_of == nullptr || api.device == nullptr ||
        api.context_of(static_cast<CUstream>(stream), &context) != CUDA_SUCCESS)
        return -1;
    const CUcontext before = device::cuda::current_context();
    device::cuda::make_current(context);
    CUdevice device = -1;
    const bool is_known = api.device(&device) == CUDA_SUCCESS;
    device::cuda::make_current(before);  // if no context was current before, none is current now
    return is_known ? device : -1;
}

}  // namespace

int current_gpu() {
    int gpu = -1;
    CAROUSEL_CUDA_RUN(label, cudaGetDevice(&gpu));
    return gpu;
}

int gpu_of(void* stream) {
    int gpu = -1;
#if CUDART_VERSION >= 12080
    // A driver that lacks one of these two functions also lacks the other, so the test of an older driver
    // covers the whole code path of such a driver.
    if (calls_of_contexts().record_event != nullptr &&
        cudaStreamGetDevice(stream_of(stream), &gpu) == cudaSuccess)
        return gpu;
    (void)cudaGetLastError();  // an older driver
#endif
    gpu = gpu_of_context(stream);
    return gpu >= 0 ? gpu : current_gpu();
}

void follow(int gpu, void* follower, void* leader) {
    if (follower == leader) return;
    const on_gpu there(gpu);
    const cudaEvent_t event = join_event(gpu);
    CAROUSEL_CUDA_RUN(label, cudaEventRecord(event, stream_of(leader)));
    CAROUSEL_CUDA_RUN(label, cudaStreamWaitEvent(stream_of(follower), event, 0));
}

bool join_all(int gpu, void* stream) {
    const on_gpu there(gpu);
    const cudaEvent_t event = join_event(gpu);
    if (!record_context(event)) return false;
    CAROUSEL_CUDA_RUN(label, cudaStreamWaitEvent(stream_of(stream), event, 0));
    return true;
}

// The runtime refuses this call during the capture of a stream. This refusal is reported as an error of the
// frame, so the frame is never treated as complete.
void wait_for_all(int gpu) {
    const on_gpu there(gpu);
    CAROUSEL_CUDA_RUN(label, cudaDeviceSynchronize());
}

void copy_to_host(int gpu, void* to, const void* from, u64 bytes, void* stream) {
    const on_gpu there(gpu);
    CAROUSEL_CUDA_RUN(label, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(stream)));
    CAROUSEL_CUDA_RUN(label, cudaStreamSynchronize(stream_of(stream)));
}

void copy_on_device(int gpu, void* to, const void* from, u64 bytes, void* stream) {
    const on_gpu there(gpu);
    CAROUSEL_CUDA_RUN(label, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(stream)));
}

}  // namespace carousel::python
