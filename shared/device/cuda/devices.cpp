#include "device/cuda/devices.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <atomic>
#include <cctype>
#include <cstdlib>

#include "core/errors.hpp"
#include "device/cpu/context.hpp"
#include "device/cuda/check.hpp"
#include "device/cuda/memory.hpp"
#include "device/cuda/queue.hpp"

namespace carousel::device::cuda {
namespace {

/// Makes the driver load all kernels when a context is created, unless the user's environment specifies
/// otherwise. Without this, a kernel would be loaded at its first launch, which synchronises the context. The
/// variable is set when the program (or the module that contains this file) is loaded, because other threads
/// may read the environment later.
[[maybe_unused]] const bool modules_load_eagerly = ::setenv("CUDA_MODULE_LOADING", "EAGER", 0) == 0;

/// The context that this thread has made current.
struct binding {
    int ordinal = -1;
    CUcontext context = nullptr;
};
thread_local binding bound;

// A library in this process may in the meantime have made another context current, even another context of
// the same GPU.
bool is_current(int ordinal) noexcept {
    return bound.ordinal == ordinal && bound.context != nullptr && bound.context == current_context();
}

std::string hex(const cudaUUID_t& uuid) {
    std::string text;
    for (const char byte : uuid.bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return text;
}

std::string plain_uuid(std::string_view text) {
    if (text.substr(0, 4) == "GPU-" || text.substr(0, 4) == "MIG-") text.remove_prefix(4);
    std::string plain;
    for (const char c : text) {
        if (c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return plain;
}

[[noreturn]] void refuse(cudaError_t status) {
    (void)cudaGetLastError();
    int driver_version = 0, runtime_version = 0;
    (void)cudaDriverGetVersion(&driver_version);
    (void)cudaRuntimeGetVersion(&runtime_version);
    if (driver_version == 0) {
        throw device_error(
            "CUDA: no NVIDIA driver is installed on this machine (libcuda.so.1 is missing or doesn't load); "
            "install one, or use --device cpu");
    }
    if (status == cudaErrorInsufficientDriver) {
        throw device_error(
            fmt::format("CUDA: the NVIDIA driver is too old: it supports CUDA {}, this program was built "
                        "with {}; install a newer driver, build with an older CUDA, or use --device cpu",
                        version_text(driver_version), version_text(runtime_version)));
    }
    if (status == cudaErrorNoDevice || status == cudaSuccess) {
        const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
        throw device_error(
            fmt::format("CUDA: the driver sees no GPU{}; check nvidia-smi, or use --device cpu",
                        visible != nullptr ? fmt::format(" (CUDA_VISIBLE_DEVICES={})", visible) : ""));
    }
    fail_setup(status, "cudaGetDeviceCount", "CUDA");
}

class context final : public device::context {
public:
    explicit context(gpu on) : on_(std::move(on)) {
        open_gpu(on_);
        warm_up();
    }

    void bind() const { on_.bind(); }
    [[nodiscard]] device_kind kind() const noexcept override { return device_kind::cuda; }
    [[nodiscard]] std::string description() const override { return on_.label(); }
    [[nodiscard]] std::unique_ptr<device::queue> make_queue() override {
        return std::make_unique<queue>(on_);
    }
    [[nodiscard]] std::unique_ptr<device::event> make_event(std::atomic<u64>*) override {
        return std::make_unique<event>(on_);
    }

    [[nodiscard]] std::unique_ptr<device::imported_event> import_event(
        device_kind from, const device::event::handle& handle, const std::atomic<u64>* shared) override {
        if (from == device_kind::cuda) return imported_event::open(on_, handle);
        if (shared == nullptr) return nullptr;
        // An event of a CPU queue is a word in shared memory.
        return std::make_unique<cpu::imported_event>(shared);
    }

    [[nodiscard]] std::unique_ptr<mapping> map(const memory_handle& handle, access wanted) override {
        return map_memory(on_, handle, wanted);
    }
    [[nodiscard]] std::unique_ptr<mapping> allocate(u64 bytes) override {
        return allocate_device(on_, bytes);
    }
    [[nodiscard]] std::unique_ptr<mapping> allocate_host(u64 bytes) override {
        return allocate_pinned(on_, bytes);
    }

private:
    /// Checks at set-up, with a clear message, whether this build's kernels run on this GPU.
    void warm_up() {
        const auto memory = allocate_pinned(on_, 2 * sizeof(status_word));
        auto* word = reinterpret_cast<status_word*>(memory->data());
        auto* torn = reinterpret_cast<u32*>(memory->data() + sizeof(status_word));
        const status_word value{1, 1, static_cast<u32>(status_state::ready)};
        queue q(on_);
        try {
            q.write_status(word, value);
            q.check_status(word, value, torn);
            q.drain();
        } catch (const cuda_error& e) {
            throw device_error(std::string("the first kernels failed: ") + e.what());
        }
        if (*torn != 0)
            throw device_error(
                on_.label() +
                ": a status word that a kernel wrote was read back with another value; the GPU is unusable");
    }

    gpu on_;
};

/// Returns null if the driver is not loaded in this process. The handle from dlopen is kept open, so the
/// driver stays loaded.
template <typename Function>
Function in_driver(std::atomic<Function>& known, const char* name) noexcept {
    if (const Function found = known.load(std::memory_order_relaxed)) return found;
    void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver == nullptr) return nullptr;
    const auto found = reinterpret_cast<Function>(::dlsym(driver, name));
    known.store(found, std::memory_order_relaxed);
    return found;
}

}  // namespace

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string gpu::label() const { return fmt::format("{} (cuda:{})", name, ordinal); }

void gpu::bind() const {
    if (is_current(ordinal)) return;
    CAROUSEL_CUDA_RUN(label(), cudaSetDevice(ordinal));
    bound = {ordinal, current_context()};
}

bool gpu::try_bind() const noexcept {
    if (is_current(ordinal)) return true;
    if (cudaSetDevice(ordinal) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    bound = {ordinal, current_context()};
    return true;
}

int gpu::attribute(int number) const {
    int value = 0;
    const CUresult result =
        driver().device_get_attribute(&value, static_cast<CUdevice_attribute>(number), ordinal);
    return result == CUDA_SUCCESS ? value : 0;
}

namespace {

std::vector<gpu> read_gpus() {
    int count = 0;
    const cudaError_t status = CAROUSEL_CUDA_CALL(cudaGetDeviceCount(&count));
    if (status != cudaSuccess || count == 0) refuse(status);
    std::vector<gpu> all;
    for (int i = 0; i < count; ++i) {
        cudaDeviceProp p{};
        CAROUSEL_CUDA_SETUP(fmt::format("cuda:{}", i), cudaGetDeviceProperties(&p, i));
        gpu g;
        g.ordinal = i;
        g.uuid = hex(p.uuid);
        g.name = p.name;
        g.major = p.major;
        g.minor = p.minor;
        g.total_bytes = p.totalGlobalMem;
        g.unified_addressing = p.unifiedAddressing != 0;
        g.integrated = p.integrated != 0;
        all.push_back(std::move(g));
    }
    return all;
}

}  // namespace

// Read once: the GPUs of a process don't change, and cudaGetDeviceProperties() takes milliseconds.
std::vector<gpu> list_gpus() {
    static const std::vector<gpu> all = read_gpus();
    return all;
}

gpu find_gpu(const device_id& id) {
    const std::vector<gpu> all = list_gpus();
    const std::string wanted = plain_uuid(id.uuid);
    std::string there;
    for (const gpu& g : all) {
        if (wanted.empty() ? g.ordinal == id.ordinal : g.uuid == wanted) return g;
        there += fmt::format("{}{} uuid {}", there.empty() ? "" : ", ", g.label(), g.uuid);
    }
    std::string asked = id.ordinal >= 0 ? fmt::format("cuda:{}", id.ordinal) : std::string();
    if (!wanted.empty()) asked += fmt::format("{}with uuid {}", asked.empty() ? "" : " ", wanted);
    throw device_error(fmt::format(
        "CUDA: this process sees no GPU {}; it sees {}; check CUDA_VISIBLE_DEVICES and the device in the "
        "pipeline file",
        asked, there));
}

void open_gpu(const gpu& on) {
    CAROUSEL_CUDA_SETUP(
        on.label(), cudaInitDevice(on.ordinal, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid));
    CAROUSEL_CUDA_SETUP(on.label(), cudaSetDevice(on.ordinal));
    bound = {on.ordinal, current_context()};
    unsigned flags = 0;
    CAROUSEL_CUDA_SETUP(on.label(), cudaGetDeviceFlags(&flags));
    // The flags must be set here if other code in this process has created the context earlier.
    if ((flags & cudaDeviceScheduleMask) != cudaDeviceScheduleBlockingSync) {
        CAROUSEL_CUDA_SETUP(on.label(), cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    }
}

bool has_peer_access(const gpu& from, const gpu& to, std::string& why) {
    if (from.ordinal == to.ordinal) return true;
    int can = 0;
    CAROUSEL_CUDA_SETUP(from.label(), cudaDeviceCanAccessPeer(&can, from.ordinal, to.ordinal));
    if (can == 0) {
        why = fmt::format(
            "{} has no peer access to {} (no NVLink, or PCIe on different bridges); put both stages on one "
            "GPU, or one of them on the CPU",
            from.label(), to.label());
    }
    return can != 0;
}

std::unique_ptr<device::context> open_context(const device_id& id) {
    return std::make_unique<context>(find_gpu(id));
}

void bind_thread(const device::context& to) { dynamic_cast<const context&>(to).bind(); }

CUcontext current_context() noexcept {
    static std::atomic<decltype(&::cuCtxGetCurrent)> known{nullptr};
    const auto ask = in_driver(known, "cuCtxGetCurrent");
    CUcontext context = nullptr;
    return ask != nullptr && ask(&context) == CUDA_SUCCESS ? context : nullptr;
}

void make_current(CUcontext context) noexcept {
    static std::atomic<decltype(&::cuCtxSetCurrent)> known{nullptr};
    if (const auto set = in_driver(known, "cuCtxSetCurrent")) (void)set(context);
}

}  // namespace carousel::device::cuda
