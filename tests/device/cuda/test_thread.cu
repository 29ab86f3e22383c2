// A thread that works on contexts of its own, through the driver: it is put on the GPU of a call, and back.
#include <dlfcn.h>

#include <memory>

#include "device/backend.hpp"
#include "device/cuda/devices.hpp"
#include "tests/device/rig.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;

namespace {

/// A context of the program's own on the first GPU, current in the thread that makes it.
class own_context {
public:
    own_context() {
        // cuCtxCreate_v2 by its name: cuda.h has another one for each generation of the toolkit.
        const auto create =
            reinterpret_cast<CUresult (*)(CUcontext*, unsigned, CUdevice)>(in_driver("cuCtxCreate_v2"));
        REQUIRE(create != nullptr);
        REQUIRE(create(&context_, 0, 0) == CUDA_SUCCESS);
    }
    ~own_context() {
        const auto destroy = reinterpret_cast<CUresult (*)(CUcontext)>(in_driver("cuCtxDestroy_v2"));
        if (destroy != nullptr) (void)destroy(context_);
    }
    own_context(const own_context&) = delete;
    own_context& operator=(const own_context&) = delete;
    [[nodiscard]] CUcontext get() const noexcept { return context_; }

private:
    static void* in_driver(const char* name) {
        void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
        return driver == nullptr ? nullptr : ::dlsym(driver, name);
    }
    CUcontext context_ = nullptr;
};

}  // namespace

TEST_CASE("a thread with its own current context is bound to the GPU's and gets its own back") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    device::bind_thread(*context);
    const CUcontext shared = device::cuda::current_context();
    REQUIRE(shared != nullptr);
    const own_context own;
    REQUIRE(device::cuda::current_context() == own.get());
    {
        const device::kept_thread kept;
        device::bind_thread(*context);  // the same GPU, but another context of it
        CHECK(device::cuda::current_context() == shared);
        const auto memory = context->allocate_host(2 * sizeof(u32));
        test::append(*queue, reinterpret_cast<u32*>(memory->data()), 7);
        queue->drain();
        CHECK(reinterpret_cast<const u32*>(memory->host_data())[1] == 7);
    }
    CHECK(device::cuda::current_context() == own.get());
    {
        const device::kept_thread not_asked(false);
        device::bind_thread(*context);
    }
    CHECK(device::cuda::current_context() == shared);
    device::cuda::make_current(nullptr);
    {
        const device::kept_thread had_none;
        device::bind_thread(*context);
    }
    CHECK(device::cuda::current_context() == shared);  // the thread's next launch goes to the GPU of the call
}
