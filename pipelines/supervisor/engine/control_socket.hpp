#pragma once
// The run's control socket: the listener and its connections. Connections are accepted from processes of the
// same user. Every message is passed to a handler, and a connection is dropped when its peer disconnects.
// Messages are interpreted in message_dispatch.hpp, not here. One thread. Nothing blocks, because a reply
// that its client does not read is dropped.
//
// While no descriptor is left to accept a connection, clients wait in the queue. In that time the listener is
// not watched, because it would wake this process continuously, and the connections of idle clients are
// closed to free descriptors for stages.

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "core/json.hpp"
#include "os/event_loop.hpp"
#include "shm/control_block.hpp"
#include "shm/fd_socket.hpp"
#include "supervisor/processes/debug_leases.hpp"

namespace carousel::supervisor {

class shortage_watch;

struct connection {
    shm::unique_fd fd;
    bool stage = false;
    u64 since_ns = 0;
    u64 request_id = 0;  ///< id of the connection's pending request to another host; 0: none
    /// the number by which a viewer's entry in a latest group is identified; none: not a viewer
    u32 tap = shm::none;
    debug_lease debug;  ///< of a `carousel debug`
};

class control_socket;

/// Handles the messages and the end of the connections.
class connection_handler {
public:
    virtual ~connection_handler() = default;
    /// If this function throws, the connection is closed.
    virtual void on_message(control_socket& from, connection& c, shm::message& m) = 0;
    /// Called when the peer has closed `c`, or when the socket has dropped `c`. The descriptor is still open,
    /// and no longer belongs to the socket.
    virtual void on_close(const connection& c) = 0;
};

/// Sends a reply. A reply that its client does not read is dropped.
void answer(int fd, const nlohmann::json& reply);

class control_socket {
public:
    using log_function = std::function<void(const std::string&)>;
    control_socket(event_loop& loop, connection_handler& handler, shortage_watch& shortage, log_function log)
        : loop_(&loop), handler_(&handler), shortage_(&shortage), log_(std::move(log)) {}
    control_socket(const control_socket&) = delete;
    control_socket& operator=(const control_socket&) = delete;

    /// Listens at `path`; connections wait in the queue until open(). The file stays. Throws shm_error.
    void listen(const std::string& path) { listener_ = shm::listen_at(path); }
    /// From now on, connections are accepted when the event loop reports them.
    void open();
    /// Called in each tick. Returns true if accepting was paused and is being retried now.
    bool resume_accepting(u64 now);
    [[nodiscard]] bool accepts() const noexcept { return accept_again_ns_ == 0; }
    /// Sends the reply to the connection whose request `id` was forwarded to another host, if that connection
    /// is still open.
    void answer_request(u64 id, const nlohmann::json& reply);
    /// From now on the connection belongs to the caller.
    [[nodiscard]] shm::unique_fd release(int fd);

private:
    void accept_all();
    void pause_accepting(int error);
    void read_connection(int fd);
    void refuse_message(int fd, const std::string& why);
    void drop(int fd);

    event_loop* loop_;
    connection_handler* handler_;
    shortage_watch* shortage_;
    log_function log_;
    shm::unique_fd listener_;
    std::map<int, connection> connections_;
    u64 accept_again_ns_ = 0;  ///< time at which accepting is retried; 0: accepting is not paused
    u64 refused_messages_ = 0;
};

}  // namespace carousel::supervisor
