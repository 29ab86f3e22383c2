#include "tests/device/rig.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "device/cpu/memfd.hpp"
#if defined(CAROUSEL_WITH_CUDA)
#include "device/cuda/devices.hpp"
#include "device/cuda/memory.hpp"
#endif
#if defined(CAROUSEL_WITH_CUDA) && defined(CAROUSEL_TEST_ON_CUDA)
#include "tests/device/cuda/test_kernels.hpp"
#endif

namespace carousel::test {
namespace {

constexpr u64 longest_block_ns = 20 * ns_per_s;

std::string find_reason() {
    if (!on_cuda || std::getenv("CAROUSEL_REQUIRE_GPU") != nullptr) return {};
#if defined(CAROUSEL_WITH_CUDA)
    try {
        (void)device::cuda::list_gpus();
        return {};
    } catch (const error& e) {
        return e.what();
    }
#else
    return "this build has no CUDA";
#endif
}

}  // namespace

const std::string& why_skip() {
    static const std::string reason = find_reason();
    return reason;
}

std::unique_ptr<device::context> open_backend() {
    if (on_cuda) return device::open({device::device_kind::cuda, "", 0});
    return device::open({device::device_kind::cpu, "", 0}, 3);
}

struct gate::state {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_open = false;
    std::unique_ptr<device::mapping> flag;  // CUDA: what the kernel reads
};

gate::gate(device::context& on) : state_(std::make_shared<state>()) {
    if (on_cuda) state_->flag = on.allocate_host(sizeof(u32));
}

gate::~gate() { open(); }

void gate::open() {
    {
        const std::lock_guard lock(state_->mutex);
        state_->is_open = true;
        if (state_->flag) std::atomic_ref<u32>(*reinterpret_cast<u32*>(state_->flag->data())).store(1);
    }
    state_->changed.notify_all();
}

void gate::block(device::queue& q) {
#if defined(CAROUSEL_WITH_CUDA) && defined(CAROUSEL_TEST_ON_CUDA)
    launch_hold(static_cast<cudaStream_t>(q.native_stream()),
                reinterpret_cast<const u32*>(state_->flag->data()), longest_block_ns);
#else
    q.submit([s = state_](device::cpu::pool&) {
        std::unique_lock lock(s->mutex);
        s->changed.wait_for(lock, std::chrono::nanoseconds(longest_block_ns), [&] { return s->is_open; });
    });
#endif
}

void append(device::queue& q, u32* diary, u32 value) {
#if defined(CAROUSEL_WITH_CUDA) && defined(CAROUSEL_TEST_ON_CUDA)
    launch_append(static_cast<cudaStream_t>(q.native_stream()), diary, value);
#else
    q.submit([diary, value](device::cpu::pool&) {
        diary[0] += 1;
        diary[diary[0]] = value;
    });
#endif
}

shareable::shareable(u64 bytes, u32 pieces) {
#if defined(CAROUSEL_WITH_CUDA) && defined(CAROUSEL_TEST_ON_CUDA)
    device::cuda::memory_maker maker({device::device_kind::cuda, "", 0});
    u64 sum = 0;
    for (u32 k = 0; k < std::max(1U, pieces); ++k) {
        const std::vector<int> before = handle_.piece_fds;
        handle_ = maker.make_vmm(bytes / std::max(1U, pieces));  // only the fd keeps it
        sum += handle_.bytes;
        handle_.piece_fds = before;
        if (pieces > 0) handle_.piece_fds.push_back(std::exchange(handle_.fd, -1));
    }
    handle_.bytes = sum;
#else
    handle_ = device::create_memfd("conformance", bytes);
#endif
    handle_.pieces = pieces;
}

shareable::~shareable() {
    for (const int fd : fds()) ::close(fd);
}

std::vector<int> shareable::fds() const {
    return handle_.piece_fds.empty() ? std::vector<int>{handle_.fd} : handle_.piece_fds;
}

std::vector<u8> read_back(device::context& on, device::queue& q, const std::byte* from, u64 bytes) {
    const auto host = on.allocate_host(bytes);
    q.copy(host->data(), from, bytes);
    q.drain();
    std::vector<u8> out(bytes);
    std::memcpy(out.data(), host->host_data(), bytes);
    return out;
}

}  // namespace carousel::test
