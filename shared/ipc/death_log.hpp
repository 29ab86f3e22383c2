#pragma once
// Reports of deaths: the holder records what each client held when it died, and sends the record, after the
// repair, to the processes that watch the space. A client that has left in order is not reported.
//
// A watcher has a connection of its own to the holder's socket. Its messages are JSON:
//   {"watch": {"version", "again", "seen"}}   the watcher; `again`: also the recorded deaths, except for the
//                                             epochs in `seen`
//   {"watching": true, "before": [epochs]}    the holder, with the recorded deaths that are not sent
//   {"death": ...}                            for each death
// A watcher that does not receive its messages is disconnected, because the holder never waits; it connects
// again, and gets the recorded deaths that it has not seen. They may exceed what the socket holds: then the
// watcher is disconnected again, and gets the rest at the next connection. If the holder dies, the next
// holder finds and reports the clients that have died meanwhile.

#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/described.hpp"
#include "ipc/space_view.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_fd.hpp"

namespace carousel::ipc {

/// A block that a process owned when it died. It is free after the repair, unless the process was sending it:
/// then the queue delivers it.
struct owned_block {
    std::string pool;
    u64 offset = 0, bytes = 0;
};
BOOST_DESCRIBE_STRUCT(owned_block, (), (pool, offset, bytes))

inline constexpr std::size_t most_blocks_listed = 256;

struct client_death {
    i32 pid = 0;
    u32 epoch = 0;
    std::vector<holding> holds;
    std::vector<owned_block> blocks;  ///< the first most_blocks_listed
    /// The sum of the counts of all objects that are held in this way (holding::as).
    [[nodiscard]] u64 count(const std::string& as) const;
    [[nodiscard]] u64 block_bytes() const;
};
BOOST_DESCRIBE_STRUCT(client_death, (), (pid, epoch, holds, blocks))

/// Called by the holder after the fence of the client and before its repair.
[[nodiscard]] client_death describe_death(space_block& s, i32 pid, u32 epoch);

/// The holder's part. One thread.
class death_log {
public:
    [[nodiscard]] static bool is_watch_request(const nlohmann::json& request);
    /// Adds a watcher, or refuses it.
    void subscribe(shm::unique_fd socket, const nlohmann::json& request);
    /// Records a death and sends it to the watchers.
    void add(const client_death& d);
    /// Removes the watchers that have disconnected.
    void drop_closed();

private:
    struct record {
        u32 epoch = 0;
        std::string message;
    };
    std::deque<record> recorded_;  ///< the last deaths
    std::vector<shm::unique_fd> watchers_;
};

/// A watcher's part. One thread at a time.
class death_watch {
public:
    /// Throws no_holder if no process holds the space, shm_error if the holder refuses the watcher.
    explicit death_watch(const std::string& space);
    /// Waits at most timeout_ns for the death of a client. Returns nothing if there is none in time, or if
    /// the thread's wait check ends the wait. Connects to the next holder if the holder has ended.
    [[nodiscard]] std::optional<client_death> next(u64 timeout_ns);

private:
    [[nodiscard]] bool try_connect(bool again);
    std::string space_;
    shm::process_fd socket_;
    /// Epochs that are not returned (again): a death may be reported again by the next holder.
    std::deque<u32> seen_;
};

}  // namespace carousel::ipc
