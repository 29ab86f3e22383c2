// Data received over a link between two hosts: any bytes as messages, and whole conversations with either
// side of it. Input: a byte that selects the side, then messages, each after a byte of its length, a
// connection and the time that passes. A message that can be read is written exactly as it was received.
#include "stages/hosts/link/receiving_side.hpp"
#include "stages/hosts/link/sending_side.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace carousel {
namespace {

using namespace hosts;

constexpr u64 most_actions = 10'000;

hello known() {
    hello h;
    h.run = "run";
    h.format = "{}";
    h.payload_bytes = 64;
    return h;
}

void talk_to_sender(std::span<const std::byte> rest) {
    sending_side a(known(), token_file("0123456789abcdef"), 0);
    u64 now = 1'000'000'000, actions_seen = 0;
    for (u64 n = 0; n < 3; ++n) {
        frame_message m;
        m.ring_sequence = n, m.bytes = m.packed_bytes = 64;
        a.begin(n);
        a.offer(m);
    }
    while (rest.size() >= 3) {
        const std::size_t length = std::min<std::size_t>(static_cast<u8>(rest[0]), rest.size() - 3);
        now += static_cast<u64>(rest[2]) * 10'000'000;
        if (const auto m = decode(rest.subspan(3, length)))
            a.received(static_cast<u32>(rest[1]) % 4, *m, now);
        actions_seen += a.step(now).size();
        rest = rest.subspan(3 + length);
    }
    test::require(actions_seen < most_actions, "a side answers with no flood");
    test::require(!a.up(), "nobody gets frames who does not know the token");
}

void talk_to_receiver(std::span<const std::byte> rest) {
    receiving_side b(known(), token_file("0123456789abcdef"), "here", "", 0, 2);
    u64 now = 1'000'000'000, actions_seen = 0;
    while (rest.size() >= 3) {
        const std::size_t length = std::min<std::size_t>(static_cast<u8>(rest[0]), rest.size() - 3);
        const u32 connection = 1 + static_cast<u32>(rest[1]) % 15;  // 0 is not a connection
        now += static_cast<u64>(rest[2]) * 10'000'000;
        if (length == 0) b.accepted(connection, now);
        if (const auto m = decode(rest.subspan(3, length))) {
            b.received(connection, *m, now);
            if (const auto* f = std::get_if<frame_message>(&*m))
                test::require(!b.frame_begins(connection, *f, now), "no stranger writes into a buffer");
        }
        actions_seen += b.step(now).size();
        rest = rest.subspan(3 + length);
    }
    test::require(actions_seen < most_actions, "a side answers with no flood");
    test::require(!b.up() && b.next() == 0, "nobody gives frames who does not know the token");
}

}  // namespace
}  // namespace carousel

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace carousel;
    const std::span<const std::byte> all(reinterpret_cast<const std::byte*>(data), size);
    if (const auto m = hosts::decode(all)) {
        const auto* h = std::get_if<hosts::hello>(&*m);
        const bool other_version = h != nullptr && h->version != hosts::link_version;
        const hosts::message_bytes back = hosts::encode(*m);
        test::require(other_version || (back.size() == size && std::memcmp(back.data(), data, size) == 0),
                      "a message is written as it came");
    }
    if (size < 1) return 0;
    if ((data[0] & 1U) != 0)
        talk_to_sender(all.subspan(1));
    else
        talk_to_receiver(all.subspan(1));
    return 0;
}
