#include "supervisor/engine/control_socket.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "control/request_message.hpp"
#include "control/stage_message.hpp"
#include "core/clock.hpp"
#include "os/descriptors.hpp"
#include "shm/process_id.hpp"
#include "supervisor/engine/problems.hpp"

namespace carousel::supervisor {
namespace {

constexpr std::size_t max_connections = 300;
constexpr u64 max_logged_refusals = 10;
constexpr u64 accept_pause_ns = 250 * ns_per_ms, idle_client_ns = 2 * ns_per_s;

}  // namespace

void answer(int fd, const nlohmann::json& reply) {
    (void)shm::send_message(fd, reply.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void control_socket::open() {
    loop_->watch(listener_.get(), EPOLLIN, [this](u32) { accept_all(); });
}

bool control_socket::resume_accepting(u64 now) {
    if (accept_again_ns_ == 0 || now < accept_again_ns_) return false;
    accept_again_ns_ = 0;
    open();
    accept_all();
    return true;
}

void control_socket::accept_all() {
    for (;;) {
        shm::unique_fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!fd && is_shortage(errno) && errno != EAGAIN) return pause_accepting(errno);
        if (!fd) return;
        if (shm::peer_of(fd.get()).uid != ::getuid() || connections_.size() >= max_connections) continue;
        const int number = fd.get();
        connections_[number].fd = std::move(fd);
        connections_[number].since_ns = now_ns();
        loop_->watch(number, EPOLLIN | EPOLLRDHUP, [this, number](u32) { read_connection(number); });
    }
}

void control_socket::pause_accepting(int error) {
    const u64 now = now_ns();
    shortage_->accept_failed(error, now);
    loop_->forget(listener_.get());
    accept_again_ns_ = now + accept_pause_ns;
    std::vector<int> idle;
    for (const auto& [fd, c] : connections_)
        if (!c.stage && c.tap == shm::none && !c.debug.is_held() && now - c.since_ns > idle_client_ns)
            idle.push_back(fd);
    for (const int fd : idle) drop(fd);
}

void control_socket::read_connection(int fd) {
    for (;;) {
        const auto at = connections_.find(fd);
        if (at == connections_.end()) return;
        shm::message m;
        const shm::receive_status got = shm::receive_message(fd, m);
        if (got == shm::receive_status::would_block) return;
        if (got != shm::receive_status::ok) {
            drop(fd);
            return;
        }
        // This is the only place that catches the errors of all kinds of messages. A broken or malicious peer
        // loses its connection, and has no other effect.
        try {
            handler_->on_message(*this, at->second, m);
        } catch (const std::exception& e) {
            refuse_message(fd, e.what());
            return;
        }
    }
}

void control_socket::refuse_message(int fd, const std::string& why) {
    if (connections_.count(fd) == 0) return;
    answer(fd, run::to_json(run::refused("invalid message: " + why)));
    if (++refused_messages_ <= max_logged_refusals)
        log_(fmt::format(
            "invalid message from pid {} ({}): its connection is closed{}", shm::peer_of(fd).pid, why,
            refused_messages_ == max_logged_refusals ? "; further invalid messages are not logged" : ""));
    drop(fd);
}

void control_socket::drop(int fd) {
    const auto at = connections_.find(fd);
    if (at == connections_.end()) return;
    loop_->forget(fd);
    const connection gone = std::move(at->second);
    connections_.erase(at);
    handler_->on_close(gone);
}

void control_socket::answer_request(u64 id, const nlohmann::json& reply) {
    for (auto& [fd, c] : connections_) {
        if (c.request_id != id) continue;
        c.request_id = 0;
        answer(fd, reply);
        return;
    }
}

shm::unique_fd control_socket::release(int fd) {
    const auto at = connections_.find(fd);
    if (at == connections_.end()) return {};
    loop_->forget(fd);
    shm::unique_fd released = std::move(at->second.fd);
    connections_.erase(at);
    return released;
}

}  // namespace carousel::supervisor
