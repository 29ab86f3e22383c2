#include "device/device_failure.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace carousel::device {
namespace {

std::atomic<int> own_failure{0};

/// The word of the file that CAROUSEL_TEST_GPU_FAILURE names; null: there is none. Mapped once, before
/// main().
const std::atomic<int>* map_word() noexcept {
    const char* const path = std::getenv("CAROUSEL_TEST_GPU_FAILURE");
    if (path == nullptr) return nullptr;
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return nullptr;
    void* const at = ::mmap(nullptr, sizeof(int), PROT_READ, MAP_SHARED, fd, 0);
    (void)::close(fd);
    return at == MAP_FAILED ? nullptr : static_cast<const std::atomic<int>*>(at);
}

const std::atomic<int>* const machine_failure = map_word();

}  // namespace

bool is_device_loss(int status) noexcept {
    // in this order: devices unavailable, no device, ECC, NVLink, contained, system not ready, unknown
    constexpr int losses[] = {error_unavailable, error_no_device, error_ecc, 220, 226, 802, 999};
    for (const int each : losses)
        if (each == status) return true;
    return false;
}

int injected_failure() noexcept {
    if (const int own = own_failure.load(std::memory_order_relaxed); own != 0) return own;
    return machine_failure == nullptr ? 0 : machine_failure->load(std::memory_order_relaxed);
}

void fail_from_now_on(int status) noexcept { own_failure.store(status, std::memory_order_relaxed); }

bool has_simulated_gpu() noexcept { return std::getenv("CAROUSEL_TEST_GPU_ON_CPU") != nullptr; }

void throw_injected_failure(const char* call, bool is_setup) {
    const int status = injected_failure();
    const std::string text =
        fmt::format("simulated GPU: {} failed with the injected CUDA error {}", call, status);
    if (is_setup && (status == error_memory || status == error_no_device || status == error_unavailable))
        throw device_error(text);
    if (is_device_loss(status)) throw device_lost_error(text);
    throw cuda_error(status, text);
}

}  // namespace carousel::device
