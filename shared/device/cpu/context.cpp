#include "device/cpu/context.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/resource_limit.hpp"
#include "device/cpu/event.hpp"
#include "device/cpu/memfd.hpp"
#include "device/cpu/queue.hpp"

namespace carousel::device::cpu {
namespace {

/// Zero-filled, page-aligned memory private to this process.
class private_memory final : public mapping {
public:
    explicit private_memory(u64 bytes) {
        bytes_ = bytes == 0 ? 1 : bytes;
        void* at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) {
            const int why = errno;  // saved now, because available_host_bytes() reads files and overwrites
                                    // errno
            throw device_error(fmt::format(
                "CPU backend: no {} bytes of memory: {}; {:.1f} MiB are free; use a smaller size", bytes_,
                no_memory_text(why), static_cast<double>(available_host_bytes()) / 1048576.0));
        }
        ::madvise(at, bytes_, MADV_HUGEPAGE);
        data_ = static_cast<std::byte*>(at);
        host_ = data_;
    }
    ~private_memory() override {
        if (::munmap(host_, bytes_) != 0)
            log::error("unmapping {} bytes failed: {}", bytes_, errno_text(errno));
    }
};

}  // namespace

std::string context::description() const {
    return fmt::format("CPU, {} thread{}", pool_->size(), pool_->size() == 1 ? "" : "s");
}

std::unique_ptr<device::queue> context::make_queue() { return std::make_unique<queue>(pool_); }

std::unique_ptr<device::event> context::make_event(std::atomic<u64>* shared) {
    return std::make_unique<event>(shared);
}

std::unique_ptr<device::imported_event> context::import_event(device_kind from, const device::event::handle&,
                                                              const std::atomic<u64>* shared) {
    if (from != device_kind::cpu || shared == nullptr) return nullptr;  // only CUDA can query a CUDA event
    return std::make_unique<imported_event>(shared);
}

std::unique_ptr<mapping> context::map(const memory_handle& handle, access wanted) {
    if (handle.kind != memory_kind::memfd) {
        throw device_error(fmt::format(
            "a stage on the CPU can't map {} memory of GPU {}; a link with a CPU stage at an end needs "
            "memfd memory",
            name_of(handle.kind), handle.uuid));
    }
    try {
        return std::make_unique<memfd_mapping>(handle, wanted);
    } catch (const shm_error& e) {
        throw device_error(fmt::format("CPU backend: {}", e.what()));
    }
}

std::unique_ptr<mapping> context::allocate(u64 bytes) { return std::make_unique<private_memory>(bytes); }

}  // namespace carousel::device::cpu
