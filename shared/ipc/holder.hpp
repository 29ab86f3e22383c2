#pragma once
// Who holds a space: it has the memory, lets clients in, sees their deaths, and mends behind the fence.
//
// A death's way: the client's socket ends -> DEAD. Its pidfd says that it has ended (or it has told before
// that nothing is mapped there) -> FENCED -> every primitive is mended -> its entry is FREE. A process that
// has closed its socket and lives stays DEAD, and keeps what it has, until it ends or comes back.
//
// The holder's own death: clients go on with what they have; what needs a holder (attaching, new primitives,
// mending) waits. The next one of that name takes the lock, reads the record, and asks for the memory: each
// client looks for the socket and hands over its descriptor there. Then it looks after each entry of the
// registry by its pidfd, and mends again whatever is FENCED or has died meanwhile. With no process left that
// maps the memory it makes a new space.
//
// A running pipeline is a space, too: its supervisor has a holder that makes the memory when the first client
// comes (memory_when::on_demand), and that never waits: what a dead supervisor has left is taken over when
// one of its clients comes, and until then whoever attaches comes again.
//
// One thread. What a crash leaves at each step stands in registry.hpp, space_block.hpp and each primitive.

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
    /// Makes the space, with so much GPU memory, or takes over what a dead holder has left. Throws
    /// config_error: held already, or another size than what is taken over has (0: whatever it has);
    /// shm_error: no room, or processes that have its memory don't hand it over; device_error: no GPU memory.
    /// `on_demand`: throws config_error: held already; shm_error: no folder. `helper`: who makes and mends
    /// GPU memory; null: nobody.
    holder(const std::string& name, u64 bytes, memory_when when = memory_when::at_once,
           gpu_helper* helper = nullptr, u64 gpu_bytes = 0);
    /// Clients that live go on as behind a death. Without any the folder goes, too.
    ~holder();
    holder(const holder&) = delete;
    holder& operator=(const holder&) = delete;

    /// Waits so long for something to happen and deals with it.
    void run_once(int timeout_ms);
    /// Can be read when run_once(0) has something to do: for a loop that has others to watch.
    [[nodiscard]] int events() const noexcept { return events_.get(); }
    [[nodiscard]] bool adopted() const noexcept { return adopted_; }
    [[nodiscard]] u32 clients() const;
    /// Only where the memory was made at once.
    [[nodiscard]] space_block& block() const { return memory_->block(); }

private:
    struct client {
        u32 entry = no_entry, epoch = 0;
        shm::unique_fd pidfd, socket;  ///< no socket: its connection has ended
    };
    struct pending_connection {
        shm::unique_fd socket;  ///< has said nothing yet
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
    std::string wanted_id_;    ///< of the memory that is to be handed over
    u64 next_poll_ns_ = 0;     ///< whether anybody has that memory still
    u64 accept_again_ns_ = 0;  ///< no descriptors are left: 0: there are
};

}  // namespace carousel::ipc
