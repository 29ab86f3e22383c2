#include "ipc/cuda/stream_gates.hpp"

#include <fmt/format.h>

#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "device/cuda/check.hpp"

namespace carousel::ipc {
namespace cuda = device::cuda;
namespace {

// The argument of a host function: that function owns this pointer and destroys it.
using owned_wait = std::shared_ptr<stream_wait>;

std::string label(int ordinal) { return fmt::format("cuda:{}", ordinal); }

}  // namespace

stream_gates::stream_gates(attachment& to, int ordinal) : to_(&to), row_(&to.block().gates[to.entry()]) {
    gate_row* const all = to.block().gates;
    CAROUSEL_CUDA_SETUP(label(ordinal), cudaHostRegister(all, sizeof to.block().gates,
                                                         cudaHostRegisterMapped | cudaHostRegisterPortable));
    void* at = nullptr;
    if (const cudaError_t status = cudaHostGetDevicePointer(&at, all, 0); status != cudaSuccess) {
        (void)cudaHostUnregister(all);
        cuda::fail_setup(status, "cudaHostGetDevicePointer", label(ordinal));
    }
    on_device_ = static_cast<std::byte*>(at) + (row_ - all) * static_cast<std::ptrdiff_t>(sizeof(gate_row));
}

// When this is called, the process's kernels have ended, so no stream is waiting.
stream_gates::~stream_gates() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
        for (auto& [place, l] : lines_) l.any.notify_all();
    }
    for (auto& [place, l] : lines_) l.thread.join();
    CAROUSEL_CUDA_LOG(cudaHostUnregister(to_->block().gates));
}

owned_wait stream_gates::acquire(u32 place, cudaStream_t stream, i64 timeout_ns, const std::string& name) {
    constexpr i64 longest_ns = 3600 * static_cast<i64>(ns_per_s);
    if (timeout_ns <= 0 || timeout_ns > longest_ns)
        throw config_error(fmt::format(
            "\"{}\": a stream that waits for a permit needs a timeout of more than 0 and at most an hour, "
            "because the process that has the permit may never return it: set one, like 50ms",
            name));
    auto w = std::make_shared<stream_wait>();
    w->in = this, w->place = place, w->timeout_ns = static_cast<u64>(timeout_ns);
    {
        const std::lock_guard lock(mutex_);
        while (w->number < gates_each && !used_[w->number].expired()) ++w->number;
        if (w->number == gates_each)
            throw config_error(
                fmt::format("{} permits of streams are requested or held in this process, which is the "
                            "limit: release some, and destroy their stream_permit",
                            gates_each));
        used_[w->number] = w;
        line& l = lines_[place];
        if (!l.thread.joinable()) l.thread = std::thread([this, place, &l] { serve(place, l); });
    }
    w->gate = &row_->of[w->number];
    open(*w);
    auto pending = std::make_unique<owned_wait>(w);
    CAROUSEL_CUDA_RUN("a stream", cudaLaunchHostFunc(stream, on_acquire, pending.get()));
    (void)pending.release();
    const auto address = reinterpret_cast<CUdeviceptr>(word_of(*w));
    const cudaError_t status = cuda::as_runtime(cuda::driver().stream_wait_value(
        stream, address, gate_word(w->generation, gate_state::granted), CU_STREAM_WAIT_VALUE_GEQ));
    if (status != cudaSuccess) drop(w);
    if (status != cudaSuccess) cuda::fail_run(status, "cuStreamWaitValue32", "a stream");
    return w;
}

void stream_gates::on_acquire(void* wait) {
    const std::unique_ptr<owned_wait> w(static_cast<owned_wait*>(wait));
    stream_gates& in = *(*w)->in;
    const std::lock_guard lock(in.mutex_);
    request_permit(**w, now_ns() + (*w)->timeout_ns);
    line& l = in.lines_.at((*w)->place);
    l.requested.push_back(*w);
    l.any.notify_one();
}

// Waits in the semaphore's line on behalf of the streams, one after another, in the order of their requests.
void stream_gates::serve(u32 place, line& l) {
    sigset_t all;  // this thread blocks all signals, so that the program's own threads receive them
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    for (;;) {
        owned_wait w;
        {
            std::unique_lock lock(mutex_);
            l.any.wait(lock, [&] { return ends_ || !l.requested.empty(); });
            if (l.requested.empty()) return;
            w = std::move(l.requested.front());
            l.requested.pop_front();
        }
        const u64 now = now_ns();
        const std::optional<permit> got =
            semaphore_at(place).acquire(w->deadline_ns > now ? w->deadline_ns - now : 0);
        const std::lock_guard lock(mutex_);
        decide(*w, semaphore_at(place), got);
    }
}

void stream_gates::release(const owned_wait& w, cudaStream_t stream) {
    auto last = std::make_unique<owned_wait>(w);
    CAROUSEL_CUDA_RUN("a stream", cudaLaunchHostFunc(stream, on_released, last.get()));
    (void)last.release();
}

void stream_gates::on_released(void* wait) {
    const std::unique_ptr<owned_wait> w(static_cast<owned_wait*>(wait));
    (*w)->in->drop(*w);
}

void stream_gates::drop(const owned_wait& w) {
    const std::lock_guard lock(mutex_);
    ipc::drop(*w, semaphore_at(w->place));
}

const u32* stream_gates::word_of(const stream_wait& w) const {
    return reinterpret_cast<const u32*>(on_device_ + w.number * sizeof(gate));
}

}  // namespace carousel::ipc
