// What a supervisor receives from another host's supervisor that knows the token and is broken or malicious:
// each message is a JSON object of bounded depth, or the connection is closed. Input: messages, with a byte
// 0xFF between them, in which a byte 1 repeats a character (test::expanded). They are sealed with the key of
// the session; if a message begins with '!' its rest is sent unsealed.
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.hpp"
#include "core/json_text.hpp"
#include "hosts/seal.hpp"
#include "supervisor/hosts/sealed_stream.hpp"
#include "tests/fuzz/answers.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace carousel {
namespace {

using hosts::seal, hosts::view_of;
using supervisor::sealed_stream;

const std::string token(32, 't');
constexpr std::string_view magic = "CRSLHST3";

/// The coordinator's side: the handshake, then messages under the session's key.
class coordinator_peer {
public:
    explicit coordinator_peer(shm::unique_fd fd) : fd_(std::move(fd)) {}
    void begin() {
        write(magic);
        write(view_of(own_));
    }
    void prove() {
        char answer[magic.size() + 2 * sizeof(hosts::seal_bytes)];
        test::require(::read(fd_.get(), answer, sizeof answer) == sizeof answer, "the far side answers");
        const std::string_view theirs(answer + magic.size(), sizeof(hosts::seal_bytes));
        key_ = view_of(seal(token, {"key ", magic, view_of(own_), theirs}));
        write(view_of(seal(token, {"near", magic, view_of(own_), theirs})));
    }
    void send(const std::string& text) {
        const u32 length = static_cast<u32>(text.size());
        const std::string_view number(reinterpret_cast<const char*>(&sent_), sizeof sent_);
        const hosts::seal_bytes tag = seal(key_, {"n", number, text});
        write({reinterpret_cast<const char*>(&length), sizeof length});
        write(text);
        write(view_of(tag));
        ++sent_;
    }
    /// Bytes that do not fit into the socket are lost, as on a connection that ends.
    void write(std::string_view bytes) {
        (void)::send(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }

private:
    shm::unique_fd fd_;
    hosts::seal_bytes own_ = hosts::fresh_bytes();
    std::string key_;
    u64 sent_ = 0;
};

void take(const std::vector<nlohmann::json>& messages) {
    for (const nlohmann::json& m : messages) {
        test::require(m.is_object(), "a message is a JSON object");
        const nlohmann::json copy = m;  // as its readers do
        (void)copy.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        test::require(json_depth(copy) <= json_channel::host_message.depth, "a message has a bounded depth");
        test::read_every_answer(copy);
    }
}

}  // namespace
}  // namespace carousel

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace carousel;
    if (!hosts::can_seal()) return 0;
    int ends[2];
    test::require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0,
                  "two sockets");
    const u64 now = now_ns();
    sealed_stream partition(shm::unique_fd(ends[0]), sealed_stream::endpoint::partition, token, now);
    coordinator_peer coordinator{shm::unique_fd(ends[1])};
    coordinator.begin();
    take(partition.advance(now));
    coordinator.prove();
    take(partition.advance(now));
    test::require(partition.open(), "the handshake succeeds");
    test::bytes in(data, size);
    for (int k = 0; k < 12 && in.left() > 0; ++k) {
        const std::string text = test::expanded(in.part());
        if (text.starts_with('!'))
            coordinator.write(std::string_view(text).substr(1));
        else
            coordinator.send(text);
        take(partition.advance(now));
    }
    return 0;
}
