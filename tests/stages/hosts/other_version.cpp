// One end of a link as a build of the next version would implement it, over real UCX, for tests against the
// shipped programs.
//
//   carousel-test-other-version sends ADDRESS PORT TOKEN
//   carousel-test-other-version receives ADDRESS PORT TOKEN
//
// The first is a complete sender that reports another version. The second accepts connections, and answers
// each with its own version. Both log what they receive on stderr, and run until they are killed.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "stages/hosts/sender_link.hpp"

namespace {

using namespace carousel;
using namespace carousel::hosts;

hello of_next_version() {
    hello h;
    h.version = link_version + 1;
    h.run = "run-of-another-version";
    h.pipeline = "other";
    return h;
}

void send_for_ever(const link_settings& where) {
    sender_link link(where, of_next_version(), token_file::read(where.token), 0, where.token + ".figures");
    link.begin(0);
    for (;;) ::pause();
}

/// The bytes after the version in the HELLO are defined by that version.
message_bytes answer() {
    message_bytes bytes = encode(of_next_version());
    bytes.resize(1 + sizeof link_version);
    bytes.insert(bytes.end(), 7, std::byte{0xA5});
    return bytes;
}

class next_receiver final : public transport::events {
public:
    void accepted(u32) override {}
    void closed(u32, const std::string&) override {}
    void message_received(u32 connection, std::span<const std::byte> bytes) override {
        const auto m = decode(bytes);
        const auto* const h = m ? std::get_if<hello>(&*m) : nullptr;
        if (h == nullptr) return log::warning("what came is no hello");
        log::info("a sender of version {} says hello", h->version);
        asks = connection;
    }
    std::byte* frame_begins(u32, std::span<const std::byte>, u64, u64&) override {
        log::warning("a frame came");
        return nullptr;
    }
    void frame_received(u64, bool) override {}
    void frame_sent(u32, u64) override {}
    u32 asks = 0;  ///< the connection that is owed an answer
};

void receive_for_ever(const link_settings& where) {
    next_receiver events;
    transport t(events, {.address = where.address, .first_port = static_cast<u16>(where.port + 1)});
    if (!t.listen(where.port)) throw config_error(fmt::format("port {} is in use", where.port));
    for (;;) {
        if (!t.progress()) t.wait(10 * ns_per_ms);
        if (events.asks != 0) t.send(std::exchange(events.asks, 0), answer());
    }
}

}  // namespace

int main(int argc, char** argv) {
    set_ucx_environment(argv);
    if (argc != 5) {
        log::error("usage: {} sends|receives ADDRESS PORT TOKEN", argv[0]);
        return 2;
    }
    const link_settings where{.address = argv[2],
                              .token = argv[4],
                              .transports = "tcp",
                              .port = static_cast<u16>(std::atoi(argv[3]))};
    try {
        std::string(argv[1]) == "sends" ? send_for_ever(where) : receive_for_ever(where);
    } catch (const error& e) {
        log::error("{}", e.what());
        return 1;
    }
}
