#include "spaces/gpu_programs.hpp"

#include <fcntl.h>

#include "core/errors.hpp"
#include "os/spawn.hpp"
#include "supervisor/stores/memory_store.hpp"

namespace carousel::supervisor {

ipc::gpu_memory gpu_programs::make(u64 bytes) {
    memory_item item;
    item.name = "the space";
    item.bytes = bytes;
    item.choice.kind = device::memory_kind::vmm;
    item.choice.device.kind = device::device_kind::cuda;
    item.choice.device.ordinal = ordinal_;
    memory_store store;
    store.make({item}, folder_);
    std::vector<int> fds;
    const nlohmann::json made = store.describe(false, 0, fds);
    ipc::gpu_memory out;
    out.bytes = made.at("bytes").get<u64>();
    out.uuid = made.at("uuid").get<std::string>();
    out.fd.reset(::fcntl(fds.at(0), F_DUPFD_CLOEXEC, 3));
    if (!out.fd) throw shm_error("keeping GPU memory: " + errno_text(errno));
    return out;
}

ipc::gpu_repairer gpu_programs::start_repairer() {
    auto [ours, theirs] = shm::socket_pair();
    spawn_request r;
    r.argv = {folder_ + "/carousel-alloc", "--repair", "--fd", "3"};
    r.extra_fd = theirs.get();
    spawned s = spawn(r);
    return {{s.pid, s.start_time}, std::move(s.pidfd), std::move(ours)};
}

void gpu_programs::reap(const ipc::gpu_repairer& m) { (void)supervisor::reap(m.pidfd.get()); }

}  // namespace carousel::supervisor
