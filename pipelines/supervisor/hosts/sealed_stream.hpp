#pragma once
// Authenticated JSON messages between the supervisors of two hosts, over TCP. The coordinator ("near",
// `carousel run`) connects; the partition ("far", `carousel host`) listens.
//
//   coordinator                                       partition
//   magic, its nonce                                ->
//                                           <-  magic, its nonce, HMAC(token; "far", magic, both nonces)
//   HMAC(token; "near", magic, both nonces)         ->
//   length, JSON, HMAC(session key; direction, number of the message, JSON)   <->
//
// The bytes before the proofs have a fixed size and are not interpreted, so an unauthenticated peer can reach
// only a comparison of at most 72 bytes. Each later message has an HMAC that includes its number, so no
// message can be changed, omitted, repeated or inserted. Nothing is encrypted. The session key is HMAC(token;
// "key", both nonces); the token itself is never sent. One thread. No call blocks, because bytes that the
// peer does not accept are buffered, up to a limit.

#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "core/running_time.hpp"
#include "hosts/seal.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

/// If nothing was received from a peer for this time, the peer counts as lost.
inline constexpr u64 silence_ns = 5 * ns_per_s;

class sealed_stream {
public:
    enum class endpoint : u8 { coordinator, partition };
    /// `fd`: a nonblocking stream socket, which may still be connecting. The coordinator sends first.
    sealed_stream(shm::unique_fd fd, endpoint role, std::string token, u64 now);
    /// Starts to connect. Throws config_error if the address is invalid or no descriptors are left.
    [[nodiscard]] static shm::unique_fd connect(const std::string& address, u32 port);

    /// Receives and sends as much as is possible without blocking. Returns the received messages in order. To
    /// be called regularly: the time in which this process did not run counts neither as silence of the peer
    /// nor towards the time limit of the peer's authentication.
    [[nodiscard]] std::vector<nlohmann::json> advance(u64 now);
    /// Returns false, and sends nothing, if the message exceeds the limit (16 MiB).
    bool send(const nlohmann::json& message);
    /// True if both sides have proven that they have the token.
    [[nodiscard]] bool open() const noexcept { return state_ == state::open; }
    [[nodiscard]] bool closed() const noexcept { return state_ == state::closed; }
    /// Returns the reason why the stream was closed.
    [[nodiscard]] const std::string& why() const noexcept { return why_; }
    /// True if the peer has proven that it has another token.
    [[nodiscard]] bool wrong_token() const noexcept { return wrong_token_; }
    [[nodiscard]] int fd() const noexcept { return fd_.get(); }
    /// Time of the last received byte, plus the time in which this process did not run after it had received
    /// that byte.
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
    running_time running_{ns_per_s};
    bool wrong_token_ = false;
};

}  // namespace carousel::supervisor
