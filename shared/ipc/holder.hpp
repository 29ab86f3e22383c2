#pragma once
// The holder of a space: it owns the memory, attaches clients, detects their deaths, and repairs after the
// fence.
//
// If a client dies, its socket is closed, and its entry becomes DEAD. The entry becomes FENCED when the
// client's pidfd reports its exit, or when the client has reported that it no longer maps the space. Then
// every primitive is repaired, and the client's entry becomes FREE. If a process has closed its socket and
// still runs, its entry stays DEAD, and the process keeps the objects that it holds, until it exits or
// reconnects.
//
// If the holder dies: clients continue to use the objects that they have; operations that need a holder
// (attaching, new primitives, repair) wait. The next holder of that name takes the lock, reads the record,
// and requests the memory: each client connects to the socket of this holder and sends the descriptor of the
// memory. Then the holder checks the process of each registry entry by its pidfd, and repairs again every
// entry that is FENCED or whose process has died meanwhile. If no process maps the memory any more, the
// holder creates a new space.
//
// Clients may be in other containers that share the folder of the space (introduction.hpp). A holder that
// takes over can't inspect a client of another pid namespace: its entry stays until it reconnects, and if it
// has died meanwhile, as long as the space exists.
//
// A running pipeline is also a space: its supervisor has a holder that creates the memory when the first
// client connects (memory_when::on_demand) and that never blocks. After the death of a supervisor, the next
// one takes the memory over when one of the clients connects; until then, attaching processes have to retry.
//
// One thread. The headers registry.hpp and space_block.hpp and the header of each primitive describe what a
// crash leaves at each step.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ipc/death_log.hpp"
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
    /// config_error if the space is already held, or if `bytes` is not 0 and differs from the size of the
    /// memory that is taken over. Throws shm_error if there is no room, or if the processes that have the
    /// memory don't send it. Throws device_error if GPU memory can't be allocated. With `on_demand`, throws
    /// config_error if the space is already held, and shm_error if its folder can't be used. `helper`
    /// allocates and repairs GPU memory; null: the space has no GPU memory.
    holder(const std::string& name, u64 bytes, memory_when when = memory_when::at_once,
           gpu_helper* helper = nullptr, u64 gpu_bytes = 0);
    /// Live clients continue, as they do after a crash of the holder. If there are no live clients, the
    /// folder is removed as well.
    ~holder();
    holder(const holder&) = delete;
    holder& operator=(const holder&) = delete;

    /// Waits at most timeout_ms for events and handles them.
    void run_once(int timeout_ms);
    /// Returns a descriptor that is readable when run_once(0) has work to do. The descriptor is meant for
    /// event loops that also watch other descriptors.
    [[nodiscard]] int events() const noexcept { return events_.get(); }
    [[nodiscard]] bool adopted() const noexcept { return adopted_; }
    [[nodiscard]] u32 clients() const;
    /// May be called only if the memory was created at once (memory_when::at_once).
    [[nodiscard]] space_block& block() const { return memory_->block(); }

private:
    struct client {
        u32 entry = no_entry, epoch = 0;
        shm::unique_fd pidfd, socket;  ///< `socket` is empty if the client's connection has ended
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
    void bury(u32 entry, u32 epoch, bool died, i32 pid);
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
    death_log deaths_;
    std::vector<client> clients_;
    std::vector<pending_connection> pending_connections_;
    bool adopted_ = false;
    std::string wanted_id_;    ///< id of the memory that clients have to send; "": none
    u64 next_poll_ns_ = 0;     ///< when to check next whether any process still has that memory
    u64 accept_again_ns_ = 0;  ///< when to accept again after running out of descriptors; 0: not needed
};

}  // namespace carousel::ipc
