#pragma once
// The holder of a space: it owns the memory, attaches clients, detects their deaths, and repairs after the
// fence.
//
// The course of a death: the client's socket ends -> DEAD. Its pidfd reports its exit (or the client has
// already reported that it maps nothing of the space) -> FENCED -> every primitive is repaired -> its entry
// is FREE. A process that has closed its socket and still runs stays DEAD, and keeps the objects that it
// holds, until it exits or reconnects.
//
// The holder's own death: clients continue to use the objects that they have; operations that need a holder
// (attaching, new primitives, repair) wait. The next holder of that name takes the lock, reads the record,
// and requests the memory: each client connects to the socket and sends its descriptor there. Then the holder
// checks the process of each registry entry by its pidfd, and repairs again every entry that is FENCED or
// whose process has died meanwhile. If no process maps the memory any more, the holder creates a new space.
//
// A running pipeline is also a space: its supervisor has a holder that creates the memory when the first
// client connects (memory_when::on_demand) and that never blocks. The memory of a dead supervisor is taken
// over when one of its clients connects, and until then attaching processes have to retry.
//
// One thread. What a crash leaves at each step is described in registry.hpp, space_block.hpp and each
// primitive.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ipc/gpu_repair.hpp"
#include "ipc/memory.hpp"
#include "ipc/place.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::ipc {

inline constexpr u64 adoption_patience_ns = 5'000'000'000;

enum class memory_when : u8 { at_once, on_demand };

class holder {
public:
    /// Creates the space with `gpu_bytes` of GPU memory, or takes over the space of a dead holder. Throws
    /// config_error if the space is already held, or if the size differs from that of the memory taken over
    /// (0: any size); shm_error if there is no room, or if the processes that have the memory don't send it;
    /// device_error if there is no GPU memory. With `on_demand`: throws config_error if the space is already
    /// held; shm_error if there is no folder. `helper`: allocates and repairs GPU memory; null: none.
    holder(const std::string& name, u64 bytes, memory_when when = memory_when::at_once,
           gpu_helper* helper = nullptr, u64 gpu_bytes = 0);
    /// Live clients continue as after a crash of the holder. If there are none, the folder is removed, too.
    ~holder();
    holder(const holder&) = delete;
    holder& operator=(const holder&) = delete;

    /// Waits at most timeout_ms for events and handles them.
    void run_once(int timeout_ms);
    /// Returns a descriptor that is readable when run_once(0) has work to do, for a loop that also watches
    /// other descriptors.
    [[nodiscard]] int events() const noexcept { return events_.get(); }
    [[nodiscard]] bool adopted() const noexcept { return adopted_; }
    [[nodiscard]] u32 clients() const;
    /// Valid only if the memory was created at once.
    [[nodiscard]] space_block& block() const { return memory_->block(); }

private:
    struct client {
        u32 entry = no_entry, epoch = 0;
        shm::unique_fd pidfd, socket;  ///< no socket: the client's connection has ended
    };
    struct pending_connection {
        shm::unique_fd socket;  ///< a connection that has sent no message yet
    };
    void acquire_lock();
    void watch(const shm::unique_fd& fd) const;
    void take_over(const hold_record& left);
    void begin();
    void find_again();
    void accept();
    void accept_again();
    bool handle_first_message(pending_connection& g);
    [[nodiscard]] std::string receive_memory(shm::message& m);
    [[nodiscard]] std::string make_memory();
    void welcome(pending_connection& g, const client_id& c, shm::unique_fd pidfd, bool with_memory);
    bool answer(client& c);
    void remove_disconnected();
    void check_client(client& c);
    void bury(u32 entry, u32 epoch);
    void repair_gpu();
    [[nodiscard]] std::string make(const std::string& text) const;
    [[nodiscard]] std::string inspect() const;

    std::string name_;
    hold_place place_;
    u64 bytes_ = 0;
    memory_when when_;
    shm::unique_fd lock_, events_, listener_;
    std::optional<memory> memory_;
    shm::unique_fd gpu_fd_;
    gpu_repair gpu_;
    std::vector<client> clients_;
    std::vector<pending_connection> pending_connections_;
    bool adopted_ = false;
    std::string wanted_id_;    ///< id of the memory that is to be received
    u64 next_poll_ns_ = 0;     ///< time of the next check whether any process still has that memory
    u64 accept_again_ns_ = 0;  ///< set after running out of descriptors; 0: this has not happened
};

}  // namespace carousel::ipc
