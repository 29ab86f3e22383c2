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
// One thread. What a crash leaves at each step stands in registry.hpp, space_block.hpp and each primitive.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ipc/memory.hpp"
#include "ipc/place.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::ipc {

inline constexpr u64 adoption_patience_ns = 5'000'000'000;

class holder {
public:
    /// Makes the space, or takes over what a dead holder has left. Throws config_error: held already, or
    /// another size than what is taken over has (0: whatever it has); shm_error: no room, or processes that
    /// have its memory don't hand it over.
    holder(const std::string& name, u64 bytes);
    /// Clients that live go on as behind a death. Without any the folder goes, too.
    ~holder();
    holder(const holder&) = delete;
    holder& operator=(const holder&) = delete;

    /// Waits so long for something to happen and deals with it.
    void run_once(int timeout_ms);
    [[nodiscard]] bool adopted() const noexcept { return adopted_; }
    [[nodiscard]] u32 clients() const;
    [[nodiscard]] space_block& block() const { return memory_->block(); }

private:
    struct client {
        u32 entry = no_entry, epoch = 0;
        shm::unique_fd pidfd, socket;  ///< no socket: its connection has ended
    };
    struct guest {
        shm::unique_fd socket;  ///< has said nothing yet
    };
    void take_lock();
    void take_over(const hold_record& left);
    void find_again();
    void let_in();
    bool hear(guest& g);
    void welcome(guest& g, const client_id& c, shm::unique_fd pidfd, bool with_memory);
    bool answer(client& c);
    void look_after(client& c);
    [[nodiscard]] std::string make(const std::string& text) const;

    std::string name_;
    hold_place place_;
    u64 bytes_ = 0;
    shm::unique_fd lock_, listener_;
    std::optional<memory> memory_;
    std::vector<client> clients_;
    std::vector<guest> guests_;
    bool adopted_ = false;
    std::string wanted_id_;  ///< of the memory that is to be handed over
};

}  // namespace carousel::ipc
