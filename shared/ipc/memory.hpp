#pragma once
// The memory of a space as a process holds it: the descriptor of a sealed memfd, and a Boost.Interprocess
// region over it. Whoever has the descriptor can hand it on; the memory lives as long as one process has it.
//
// A child that is forked doesn't inherit the mapping (MADV_DONTFORK): it isn't the client, and could
// otherwise change words behind the fence of its parent.

#include <memory>
#include <string>
#include <vector>

#include "ipc/space_block.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::ipc {

class memory {
public:
    /// A zeroed space of `bytes` (whole pages), its pages reserved, its head written and its magic stored;
    /// with that GPU memory. Throws shm_error: no room, no memfd.
    [[nodiscard]] static memory make(const std::string& name, u64 bytes, const gpu_memory& gpu = {});
    /// Maps what another process has handed over. Throws shm_error: no space, another layout version, another
    /// user's, cut off or of another size than it says.
    [[nodiscard]] static memory map(shm::unique_fd fd, const std::string& name);

    memory(memory&&) noexcept;
    memory& operator=(memory&&) noexcept;
    ~memory();
    [[nodiscard]] space_block& block() const noexcept { return *block_; }
    [[nodiscard]] int fd() const noexcept { return fd_.get(); }

private:
    struct mapping;
    memory(shm::unique_fd fd, std::unique_ptr<mapping> m);
    shm::unique_fd fd_;
    std::unique_ptr<mapping> mapping_;
    space_block* block_ = nullptr;
};

/// Processes that map the memory of the space with that id, by /proc: their pids, and how many.
[[nodiscard]] std::vector<i32> processes_with(const std::string& id);
[[nodiscard]] u32 mappers_of(const std::string& id);

}  // namespace carousel::ipc
