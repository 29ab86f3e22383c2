#include "pipelines/alloc/repair.hpp"

#include <sys/prctl.h>

#include <csignal>

#include "core/errors.hpp"
#include "device/backend.hpp"
#include "ipc/memory.hpp"
#if defined(CAROUSEL_WITH_CUDA)
#include "ipc/cuda/repair.hpp"
#endif

namespace carousel::alloc {
namespace {

constexpr u64 patience_ns = 30'000'000'000;

}  // namespace

int repair(int socket) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // if the holder dies, the next holder starts another process for the
                                         // repair
    shm::message m;
    if (shm::receive_message(socket, m, patience_ns) != shm::receive_status::ok)
        throw shm_error("repairing GPU memory: the holder sent no request");
    const auto order = ipc::repair_order_from(m.text);
    if (!order || m.fds.size() != 2)
        throw shm_error(
            "repairing GPU memory: the holder's request is incomplete: rebuild the older of the two "
            "programs");
    ipc::memory space = ipc::memory::map(std::move(m.fds[0]), "under repair");
    const auto device = device::open({device::device_kind::cuda, space.block().gpu_uuid, 0});
    device::memory_handle handle;
    handle.kind = device::memory_kind::vmm;
    handle.bytes = space.block().gpu_bytes;
    handle.fd = m.fds[1].get();
    handle.uuid = space.block().gpu_uuid;
    const auto gpu = device->map(handle, device::access::write);
#if defined(CAROUSEL_WITH_CUDA)
    ipc::repair_gpu_words(space.block(), gpu->data(), order->epochs);
#endif
    if (!shm::send_message(socket, ipc::repaired_text))
        throw shm_error("repairing GPU memory: the holder has ended");
    return exit_code::ok;
}

}  // namespace carousel::alloc
