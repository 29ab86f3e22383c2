#pragma once
// Creates and keeps the memory of all rings and assets of a run. Host memory is created here (sealed memfds);
// GPU memory is created by carousel-alloc, which passes the fds over and exits (vmm) or stays as the memory's
// owner (ipc). If this supervisor is killed, an owner of ipc memory waits for the next supervisor in the
// directory of the run (run_location).

#include <string>
#include <vector>

#include "core/json.hpp"
#include "os/spawn.hpp"
#include "shm/control_block.hpp"
#include "shm/fd_socket.hpp"
#include "supervisor/plan/memory_plan.hpp"

namespace carousel::supervisor {

class status_reader;

class memory_store {
public:
    memory_store() = default;
    ~memory_store();
    memory_store(const memory_store&) = delete;
    memory_store& operator=(const memory_store&) = delete;

    /// The run that the memory belongs to. If this supervisor is killed, an owner of ipc memory waits in
    /// `directory` for the next supervisor, for up to `grace_s`.
    struct run_location {
        std::string directory, run_id;
        f64 grace_s = 0;
    };
    void set_run_location(run_location where) { run_location_ = std::move(where); }
    /// Creates all blocks. `folder`: folder of the carousel-alloc program. Throws shm_error, or device_error
    /// with the message of carousel-alloc.
    void make(const std::vector<memory_item>& items, const std::string& folder,
              u64 timeout_ns = 60'000'000'000);
    /// Creates two sorts of blocks again: those of a dead owner (kind ipc), and those that were not restored.
    /// The other blocks are kept.
    void remake(const std::string& folder);
    /// Replaces the blocks by those of another plan. A block that is the same in both plans keeps its memory
    /// if `keep` (by link) permits it; `keep` empty: none does. The others have no memory until remake().
    /// Returns, by link, whether the ring has lost its memory.
    [[nodiscard]] std::vector<bool> replan(const std::vector<memory_item>& items,
                                           const std::vector<bool>& keep);
    /// Gives a ring other memory, which no process maps. In host memory it has the same contents; memory on a
    /// GPU is allocated by the next remake(). Throws shm_error.
    void replace_ring(u32 link);
    /// Returns the status words of a ring's slots. Memory on a GPU is read by `gpu`. Empty if that is null or
    /// if the memory belongs to a process. Throws shm_error, device_error.
    [[nodiscard]] std::vector<device::status_word> read_status_words(u32 link, u32 slots, u64 slot_bytes,
                                                                     status_reader* gpu) const;
    /// True if a ring has memory on a GPU that is kept while its processes end.
    [[nodiscard]] bool has_gpu_ring() const noexcept;
    /// Writes kinds and handles into a control block that is not published yet.
    void enter(shm::control_block& c) const;
    /// Returns {kind, bytes, uuid, fd (index into fds) or -1, ipc, pieces} of one block and appends its fds.
    [[nodiscard]] nlohmann::json describe(bool asset, u32 index, std::vector<int>& fds) const;
    /// Returns this description of every block, as {asset, index, ...}; each fd is in `fds` once.
    [[nodiscard]] nlohmann::json describe_all(std::vector<int>& fds) const;

    // ---- takeover from a dead supervisor: any stage that holds the fds returns them
    /// Sets the blocks to be restored; creates nothing.
    void expect(const std::vector<memory_item>& items);
    /// Restores missing blocks from describe_all()'s list; ignores a block that does not match the expected
    /// block.
    void restore(const nlohmann::json& list, std::vector<shm::unique_fd>& fds);
    /// True if every block is present.
    [[nodiscard]] bool complete() const noexcept;
    [[nodiscard]] bool has_ipc() const noexcept;
    /// Registers the owner of ipc memory, which has reconnected on `socket`.
    void adopt_owner(spawned owner, shm::unique_fd socket) noexcept;

    /// Returns the pidfd of the process that owns memory of kind ipc; -1: there is no such process.
    [[nodiscard]] int owner_pidfd() const noexcept { return owner_.pidfd.get(); }
    [[nodiscard]] i32 owner_pid() const noexcept { return owner_.pid; }
    /// Ends and reaps the owner.
    void release_owner() noexcept;

private:
    struct block {
        memory_item item;
        /// ipc memory has no descriptor, vmm memory in pieces has one descriptor per piece, and any other
        /// memory has one descriptor
        std::vector<shm::unique_fd> fds;
        u64 bytes = 0;
        std::string uuid, ipc;  ///< ipc: hex
    };
    static void make_here(block& b);
    [[nodiscard]] static std::size_t fds_of(const memory_item& m) noexcept;
    [[nodiscard]] static bool is_there(const block& b) noexcept;
    [[nodiscard]] static nlohmann::json describe(const block& b, std::vector<int>& fds);
    void make_on_device(const std::vector<block*>& wanted, const std::string& folder, u64 timeout_ns);

    run_location run_location_;
    std::vector<block> blocks_;
    spawned owner_;
    shm::unique_fd owner_socket_;
};

}  // namespace carousel::supervisor
