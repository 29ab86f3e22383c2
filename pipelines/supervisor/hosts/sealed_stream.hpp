#pragma once
// JSON messages between the supervisors of two hosts, over TCP. The near one, of `carousel run`, connects;
// the far one, `carousel host`, listens.
//
//   near                                              far
//   magic, its nonce                                ->
//                                           <-  magic, its nonce, HMAC(token; "far", magic, both nonces)
//   HMAC(token; "near", magic, both nonces)         ->
//   length, JSON, HMAC(session key; direction, number of the message, JSON)   <->
//
// What comes before the proofs has a fixed size, and nothing of it is interpreted: a stranger gets no further
// than 72 bytes into a comparison. Each message behind them bears a proof of its own, with its number: none
// can be changed, left out, repeated or put in between. Nothing is encrypted. The session key is HMAC(token;
// "key", both nonces); the token itself never crosses. One thread. Nothing here waits: what the peer does not
// take is kept, up to a bound.

#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "hosts/seal.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

/// Who has said nothing for so long is gone.
inline constexpr u64 silence_ns = 5 * ns_per_s;

class sealed_stream {
public:
    enum class endpoint : u8 { coordinator, partition };
    /// `fd`: a stream socket, nonblocking; it may be connecting still. The near side speaks first.
    sealed_stream(shm::unique_fd fd, endpoint role, std::string token, u64 now);
    /// Begins to connect. Throws config_error: no such address, no descriptors.
    [[nodiscard]] static shm::unique_fd connect(const std::string& address, u32 port);

    /// Takes what has come and sends what can go. Messages in their order.
    [[nodiscard]] std::vector<nlohmann::json> advance(u64 now);
    /// False: it is longer than a message may be (16 MiB), and nothing was sent.
    bool send(const nlohmann::json& message);
    /// Both have proven that they know the token.
    [[nodiscard]] bool open() const noexcept { return state_ == state::open; }
    [[nodiscard]] bool closed() const noexcept { return state_ == state::closed; }
    /// Why it is closed.
    [[nodiscard]] const std::string& why() const noexcept { return why_; }
    /// The peer has proven that it has another token than ours.
    [[nodiscard]] bool wrong_token() const noexcept { return wrong_token_; }
    [[nodiscard]] bool has_unsent() const noexcept { return !out_.empty(); }
    [[nodiscard]] int fd() const noexcept { return fd_.get(); }
    /// When a byte came last.
    [[nodiscard]] u64 last_received_ns() const noexcept { return last_received_ns_; }

private:
    enum class state : u8 { connecting, greeting, proving, open, closed };
    void close(const std::string& why);
    bool is_connected();
    void read_some(u64 now);
    void flush();
    [[nodiscard]] bool consume(std::size_t bytes, std::string& to);
    void shake();
    [[nodiscard]] bool read_message(nlohmann::json& to);
    [[nodiscard]] hosts::seal_bytes proof_of(endpoint role) const;
    [[nodiscard]] hosts::seal_bytes seal_of(endpoint role, u64 number, std::string_view text) const;

    shm::unique_fd fd_;
    endpoint role_;
    state state_;
    std::string token_, key_, in_, out_, gone_, why_;
    hosts::seal_bytes mine_{}, theirs_{};
    u64 sent_ = 0, received_ = 0, since_ns_, last_received_ns_;
    bool wrong_token_ = false;
};

}  // namespace carousel::supervisor
