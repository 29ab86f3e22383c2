// Counts, by name, the calls with which a process waits for its GPU: CUDA_INJECTION64_PATH=libcount_waits.so.
// The driver loads it; CUPTI's callbacks are reached by dlopen, so that no toolkit is needed to build it. It
// prints nothing, neither at each thousandth frame's worth of kernel launches nor at the end: the counts go
// to COUNT_WAITS_TO, rewritten every 200 ms by a thread.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

// The head of CUpti_CallbackData, which has not changed since CUPTI 4.
struct callback_data {
    int site;  // 0: enter
    const char* function;
};
using callback = void (*)(void*, int domain, std::uint32_t id, const void* data);

constexpr const char* names[] = {
    "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize", "cuMemFree",         "cuMemAlloc",
    "cuLaunchKernel",   "cuMemcpyAsync",       "cuCtxRecordEvent",   "cuStreamWaitEvent", "cuMemsetD8Async"};
std::atomic<std::uint64_t> counts[sizeof names / sizeof *names];

void seen(void*, int, std::uint32_t, const void* raw) {
    const auto* data = static_cast<const callback_data*>(raw);
    if (data->site != 0 || data->function == nullptr) return;
    for (std::size_t k = 0; k < sizeof names / sizeof *names; ++k)
        if (std::strncmp(data->function, names[k], std::strlen(names[k])) == 0) ++counts[k];
}

void write_counts(const std::string& path) {
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(200))) {
        FILE* out = std::fopen((path + ".new").c_str(), "w");
        if (out == nullptr) return;
        for (std::size_t k = 0; k < sizeof names / sizeof *names; ++k)
            std::fprintf(out, "%s %llu\n", names[k], static_cast<unsigned long long>(counts[k].load()));
        std::fclose(out);
        std::rename((path + ".new").c_str(), path.c_str());
    }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
    const char* to = std::getenv("COUNT_WAITS_TO");
    const char* cupti = std::getenv("COUNT_WAITS_CUPTI");
    void* library = dlopen(cupti != nullptr ? cupti : "libcupti.so", RTLD_NOW);
    if (to == nullptr || library == nullptr) {
        std::fprintf(stderr, "count_waits: no CUPTI: %s\n", dlerror());
        return 1;
    }
    auto subscribe = reinterpret_cast<int (*)(void**, callback, void*)>(dlsym(library, "cuptiSubscribe"));
    auto enable = reinterpret_cast<int (*)(std::uint32_t, void*, int)>(dlsym(library, "cuptiEnableDomain"));
    void* subscriber = nullptr;
    const int first = subscribe(&subscriber, seen, nullptr),
              second = enable(1, subscriber, 1 /* the driver's API */);
    if (first != 0 || second != 0) std::fprintf(stderr, "count_waits: CUPTI answers %d, %d\n", first, second);
    const std::string path = std::string(to) + "." + std::to_string(::getpid());
    std::thread(write_counts, path).detach();
    return 1;
}
