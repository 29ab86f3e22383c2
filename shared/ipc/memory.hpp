#pragma once
// A process's reference to the memory of a space: the descriptor of a sealed memfd and a Boost.Interprocess
// region over it. A process that has the descriptor can pass it to others; the memory exists as long as any
// process has it.
//
// A forked child doesn't inherit the mapping (MADV_DONTFORK), because the child is not a client: with the
// mapping it could change words after its parent's fence.

#include <memory>
#include <string>
#include <vector>

#include "ipc/space_block.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::ipc {

class memory {
public:
    /// Creates a zeroed space of `bytes` bytes (rounded up to whole pages): reserves its pages, writes its
    /// head, and then stores its magic. `gpu`: the GPU memory of the space. Throws shm_error if there is no
    /// room, or if no memfd can be created.
    [[nodiscard]] static memory make(const std::string& name, u64 bytes, const gpu_memory& gpu = {});
    /// Maps a descriptor received from another process. Throws shm_error if the memory is not a space, has
    /// another layout version, belongs to another user, is truncated, or differs in size from the size in its
    /// head.
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

/// processes_with() returns the pids of the processes that map the memory of the space with that id, and
/// mappers_of() returns their number. Both read /proc.
[[nodiscard]] std::vector<i32> processes_with(const std::string& id);
[[nodiscard]] u32 mappers_of(const std::string& id);

}  // namespace carousel::ipc
