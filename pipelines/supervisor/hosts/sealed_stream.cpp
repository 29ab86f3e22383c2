#include "supervisor/hosts/sealed_stream.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json_text.hpp"

namespace carousel::supervisor {
namespace {

using hosts::fresh_bytes, hosts::same_seal, hosts::seal, hosts::seal_bytes, hosts::view_of;
using nlohmann::json;
constexpr std::string_view magic = "CRSLHST3";
constexpr std::size_t longest_message = json_channel::host_message.bytes, most_kept = 64U << 20U;
constexpr u64 shake_patience_ns = 3 * ns_per_s;

template <typename T>
std::string_view bytes_of(const T& number) noexcept {
    return {reinterpret_cast<const char*>(&number), sizeof number};
}

}  // namespace

sealed_stream::sealed_stream(shm::unique_fd fd, endpoint role, std::string token, u64 now)
    : fd_(std::move(fd)),
      role_(role),
      state_(role == endpoint::coordinator ? state::connecting : state::greeting),
      token_(std::move(token)),
      mine_(fresh_bytes()),
      since_ns_(now),
      last_received_ns_(now) {
    const int on = 1;
    (void)::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

shm::unique_fd sealed_stream::connect(const std::string& address, u32 port) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<u16>(port));
    shm::unique_fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd || ::inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1)
        throw config_error(fmt::format("cannot connect to {} port {}: {}", address, port, errno_text(errno)));
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 && errno != EINPROGRESS) {
        const int why = errno;
        throw config_error(errno_text(why));
    }
    return fd;
}

void sealed_stream::close(const std::string& why) {
    if (state_ == state::closed) return;
    state_ = state::closed;
    why_ = why;
    out_.clear();
    fd_.reset();
}

// A socket that is connecting becomes writable when it has connected, and also when it has failed to connect.
bool sealed_stream::is_connected() {
    if (state_ != state::connecting) return true;
    if (events_of(fd_.get(), POLLOUT) == 0) return false;
    int failed = 0;
    socklen_t length = sizeof failed;
    if (::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &failed, &length) != 0 || failed != 0) {
        close(std::strerror(failed != 0 ? failed : errno));
        return false;
    }
    state_ = state::greeting;
    out_ = std::string(magic) + std::string(view_of(mine_));
    return true;
}

void sealed_stream::read_some(u64 now) {
    char bytes[65536];
    while (gone_.empty() && state_ != state::closed && in_.size() <= longest_message + sizeof bytes) {
        const ssize_t n = ::recv(fd_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
        if (n > 0) {
            last_received_ns_ = now;
            in_.append(bytes, static_cast<std::size_t>(n));
            if (state_ != state::open && in_.size() > longest_message)
                return close("too much data before the hello message");
            continue;
        }
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        gone_ = n == 0 ? "the other side has closed the connection" : std::strerror(errno);
        return;
    }
}

void sealed_stream::flush() {
    std::size_t done = 0;
    while (state_ != state::closed && done < out_.size()) {
        const ssize_t n =
            ::send(fd_.get(), out_.data() + done, out_.size() - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            done += static_cast<std::size_t>(n);
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        return close(std::strerror(errno));
    }
    out_.erase(0, done);
}

bool sealed_stream::consume(std::size_t bytes, std::string& to) {
    if (in_.size() < bytes) return false;
    to = in_.substr(0, bytes);
    in_.erase(0, bytes);
    return true;
}

seal_bytes sealed_stream::proof_of(endpoint role) const {
    const bool coordinator = role_ == endpoint::coordinator;
    return seal(token_, {role == endpoint::coordinator ? "near" : "far ", magic,
                         view_of(coordinator ? mine_ : theirs_), view_of(coordinator ? theirs_ : mine_)});
}

seal_bytes sealed_stream::seal_of(endpoint role, u64 number, std::string_view text) const {
    return seal(key_, {role == endpoint::coordinator ? "n" : "f", bytes_of(number), text});
}

// In the state `greeting` the partition waits for the magic and a nonce, and the coordinator waits for the
// magic, a nonce and a proof. In the state `proving` the partition waits for the proof.
void sealed_stream::shake() {
    const endpoint other = role_ == endpoint::coordinator ? endpoint::partition : endpoint::coordinator;
    std::string got;
    const auto finish = [&] {
        const bool coordinator = role_ == endpoint::coordinator;
        key_ = view_of(seal(token_, {"key ", magic, view_of(coordinator ? mine_ : theirs_),
                                     view_of(coordinator ? theirs_ : mine_)}));
        state_ = state::open;
    };
    const auto read_nonce = [&] {
        std::memcpy(theirs_.data(), got.data() + got.size() - theirs_.size(), theirs_.size());
    };
    if (state_ == state::greeting && role_ == endpoint::partition) {
        if (!consume(magic.size() + theirs_.size(), got)) return;
        if (!got.starts_with(magic)) {  // the magic is sent, which reveals this version and nothing else
            (void)::send(fd_.get(), magic.data(), magic.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
            return close("it is not a supervisor of this version");
        }
        read_nonce();
        out_ += std::string(magic) + std::string(view_of(mine_)) +
                std::string(view_of(proof_of(endpoint::partition)));
        state_ = state::proving;
    }
    if (state_ == state::greeting && role_ == endpoint::coordinator) {
        // Another program on this port may send fewer bytes than a supervisor, or different ones.
        const std::size_t begun = std::min(in_.size(), magic.size());
        if (in_.compare(0, begun, magic, 0, begun) != 0)
            return close(
                "the process there is not a `carousel host` of this version: its version may differ, or "
                "another program may use that port");
        if (!consume(magic.size() + theirs_.size() + sizeof(seal_bytes), got)) return;
        const std::string proof = got.substr(magic.size() + theirs_.size());
        got.resize(magic.size() + theirs_.size());
        read_nonce();
        if (!same_seal(proof_of(other), proof)) {
            wrong_token_ = true;
            return close("it has a different token for this pipeline");
        }
        out_ += view_of(proof_of(endpoint::coordinator));
        finish();
    }
    if (state_ == state::proving && consume(sizeof(seal_bytes), got)) {
        if (same_seal(proof_of(other), got)) return finish();
        wrong_token_ = true;
        close("it has a different token for this pipeline");
    }
}

bool sealed_stream::read_message(json& to) {
    u32 length = 0;
    if (in_.size() < sizeof length) return false;
    std::memcpy(&length, in_.data(), sizeof length);
    if (length > longest_message) {
        close("a message is too long");
        return false;
    }
    if (in_.size() < sizeof length + length + sizeof(seal_bytes)) return false;
    const std::string_view text(in_.data() + sizeof length, length),
        tag(in_.data() + sizeof length + length, sizeof(seal_bytes));
    if (!same_seal(seal_of(role_ == endpoint::coordinator ? endpoint::partition : endpoint::coordinator,
                           received_, text),
                   tag)) {
        close("a message has an invalid authentication tag");
        return false;
    }
    ++received_;
    to = parse_json_or_discard(text, json_channel::host_message);
    in_.erase(0, sizeof length + length + sizeof(seal_bytes));
    if (to.is_object()) return true;
    close(
        fmt::format("a message is not a JSON object of at most {} levels", json_channel::host_message.depth));
    return false;
}

std::vector<json> sealed_stream::advance(u64 now) {
    std::vector<json> out;
    if (closed()) return out;
    const u64 gap = running_.consume_gap(now);
    since_ns_ = later_by_gap(since_ns_, gap, now);
    last_received_ns_ = later_by_gap(last_received_ns_, gap, now);
    if (is_connected()) {
        flush();
        read_some(now);
    }
    if (state_ == state::greeting || state_ == state::proving) shake();
    json message;
    while (open() && read_message(message)) out.push_back(std::move(message));
    if (!gone_.empty() && state_ == state::greeting && role_ == endpoint::coordinator)
        close(gone_ + "; it may be a `carousel host` of another version");
    // closed only now, after all messages of the peer were read
    if (!gone_.empty() && !closed()) close(gone_);
    if (!closed() && !open() && now > since_ns_ + shake_patience_ns)
        close(state_ == state::connecting ? "no answer" : "it did not authenticate");
    flush();
    return out;
}

bool sealed_stream::send(const json& message) {
    const std::string text = message.dump(-1, ' ', false, json::error_handler_t::replace);
    if (text.size() > longest_message) return false;
    if (!open()) return true;
    const u32 length = static_cast<u32>(text.size());
    out_ += bytes_of(length);
    out_ += text;
    out_ += view_of(seal_of(role_, sent_++, text));
    if (out_.size() > most_kept)
        close("it does not accept data any more");
    else
        flush();
    return true;
}

}  // namespace carousel::supervisor
