#pragma once
// Makes and keeps the memory of all rings and assets of a run. Host memory is made here (sealed memfds); GPU
// memory by carousel-alloc, which hands the fds over and ends (vmm) or stays as its owner (ipc). The fds live
// as long as this object: no stage's death takes memory away, and newcomers get the same fds.

#include <string>
#include <vector>

#include "core/json.hpp"
#include "os/spawn.hpp"
#include "shm/control_block.hpp"
#include "shm/fd_socket.hpp"
#include "supervisor/plan/memory_plan.hpp"

namespace carousel::supervisor {

class memory_store {
public:
    memory_store() = default;
    ~memory_store();
    memory_store(const memory_store&) = delete;
    memory_store& operator=(const memory_store&) = delete;

    /// The run that the memory is for: an owner of ipc memory waits there for another supervisor when this
    /// one is killed.
    struct run_location {
        std::string directory, run_id;
        f64 grace_s = 0;
    };
    void set_run_location(run_location where) { run_location_ = std::move(where); }
    /// Makes everything. `folder`: where carousel-alloc lies. Throws shm_error, or device_error with the
    /// maker's own words.
    void make(const std::vector<memory_item>& items, const std::string& folder,
              u64 timeout_ns = 60'000'000'000);
    /// Makes again what a dead owner had (kind ipc), and what did not come back; the rest stays.
    void remake(const std::string& folder);
    /// Enters kinds and handles into a control block that is not published yet.
    void enter(shm::control_block& c) const;
    /// {kind, bytes, uuid, fd (index into fds) or -1, ipc, pieces} of one block; adds its fds.
    [[nodiscard]] nlohmann::json describe(bool asset, u32 index, std::vector<int>& fds) const;
    /// The same of every block, as {asset, index, ...}, in `fds` each fd once.
    [[nodiscard]] nlohmann::json describe_all(std::vector<int>& fds) const;

    // ---- taking over from a dead supervisor: the fds come back from any stage that holds them
    /// What is to come back; nothing is made.
    void expect(const std::vector<memory_item>& items);
    /// Takes from describe_all()'s list what is still missing; a block that doesn't fit what is expected is
    /// left out.
    void restore(const nlohmann::json& list, std::vector<shm::unique_fd>& fds);
    /// Every block is there to be handed out.
    [[nodiscard]] bool complete() const noexcept;
    [[nodiscard]] bool has_ipc() const noexcept;
    /// The owner of ipc memory has come back on this connection.
    void adopt_owner(spawned owner, shm::unique_fd socket) noexcept;

    /// The process that owns memory of kind ipc; -1: there is none.
    [[nodiscard]] int owner_pidfd() const noexcept { return owner_.pidfd.get(); }
    [[nodiscard]] i32 owner_pid() const noexcept { return owner_.pid; }
    /// Ends and reaps the owner.
    void release_owner() noexcept;
    [[nodiscard]] u64 device_bytes() const noexcept;

private:
    struct block {
        memory_item item;
        std::vector<shm::unique_fd> fds;  ///< one, of vmm memory in pieces one each, of ipc none
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
