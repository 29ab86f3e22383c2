// The effects of a link with memory = "direct" on frames in a GPU's memory: UCX reads them there.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "core/errors.hpp"
#include "device/backend.hpp"
#include "device/cuda/memory.hpp"
#include "tests/stages/hosts/frame_exchange.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace carousel;

/// The pieces of a ring, mapped as a sending stage maps it; written by another mapping of the same memory.
struct ring_memory {
    explicit ring_memory(device::memory_kind kind)
        : maker({device::device_kind::cuda, "", 0}),
          handle(kind == device::memory_kind::vmm ? maker.make_vmm(test::exchanged_bytes)
                                                  : maker.make_ipc(test::exchanged_bytes)),
          context(device::open({device::device_kind::cuda, "", 0})),
          queue(context->make_queue()),
          staging(context->allocate_host(test::exchanged_bytes)) {
        if (kind == device::memory_kind::vmm) {
            read = context->map(handle, device::access::read);
            written = context->map(handle, device::access::write);
        } else {
            read = context->allocate(test::exchanged_bytes);  // a process can't open its own handle
        }
        device::bind_thread(*context);
    }
    ~ring_memory() {
        if (handle.fd >= 0) ::close(handle.fd);
    }
    ring_memory(const ring_memory&) = delete;
    ring_memory& operator=(const ring_memory&) = delete;

    [[nodiscard]] test::sent_memory to_send() {
        return {read->data(),
                [this](std::span<const std::byte> bytes) {
                    std::memcpy(staging->host_data(), bytes.data(), bytes.size());
                    queue->copy((written ? *written : *read).data(), staging->data(), bytes.size());
                    queue->drain();
                },
                true};
    }

    device::cuda::memory_maker maker;
    device::memory_handle handle;
    std::unique_ptr<device::context> context;
    std::unique_ptr<device::queue> queue;
    std::unique_ptr<device::mapping> staging, read, written;
};

/// "": it can be tried here.
std::string why_not() {
    try {
        const ring_memory any(device::memory_kind::ipc);
        const test::frame_exchange link(true);
        return "";
    } catch (const error& e) {
        return e.what();
    }
}

}  // namespace

#define NEEDS_GPU_AND_ITS_UCX() \
    if (const std::string why = why_not(); !why.empty()) CAROUSEL_SKIP(why.c_str())

TEST_CASE("frames of every size come whole from a GPU's memory") {
    NEEDS_GPU_AND_ITS_UCX();
    for (const auto kind : {device::memory_kind::vmm, device::memory_kind::ipc}) {
        ring_memory memory(kind);
        test::check_frames_of_every_size(memory.to_send());
    }
}

TEST_CASE("GPU memory is released when its frame ends, even if the connection broke in it") {
    NEEDS_GPU_AND_ITS_UCX();
    ring_memory memory(device::memory_kind::vmm);
    test::check_broken_connections(memory.to_send());
}

TEST_CASE("over TCP UCX rewrites no function of CUDA's driver in the process of a stage") {
    NEEDS_GPU_AND_ITS_UCX();
    void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(driver != nullptr);
    for (const char* name : {"cuMemAlloc_v2", "cuMemFree_v2"}) {
        std::array<std::byte, 16> now{};
        std::memcpy(now.data(), ::dlsym(driver, name), now.size());
        INFO(name);
        CHECK(now[0] != std::byte{0xe9});  // a jump, as UCX puts there
    }
}
