// Two builds with different versions of the link protocol.
#include <fmt/format.h>

#include "stages/hosts/link/message.hpp"
#include "tests/stages/hosts/link_world.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;

receiving_side listening(const token_file& token) { return {hello_of_test(), token, "run-b", "", 0, 4}; }

/// A sender that has sent its HELLO to `b` over a connection of that number.
struct met {
    sending_side a;
    met(receiving_side& b, hello own_hello, const token_file& token, u32 connection, u64 now)
        : a(std::move(own_hello), token, 0) {
        a.begin(0);
        b.accepted(connection, now);
        for (int k = 0; k < 4; ++k) {
            for (const action& x : a.step(now))
                if (x.kind == action::what::send) b.received(connection, *decode(x.bytes), now);
            for (const action& x : b.step(now))
                if (x.kind == action::what::send) a.received(1, *decode(x.bytes), now);
            b.sender_is_kept();
        }
    }
};

std::string sentence(const char* of, u32 there, u32 here) {
    return fmt::format(fmt::runtime(of), there, here);
}

constexpr const char* of_sender =
    "the other side uses version {} of the link protocol, but this side uses version {}: use the same build "
    "on both hosts";
constexpr const char* of_receiver =
    "the sender uses version {} of the link protocol, but this side uses version {}: use the same build on "
    "both hosts";

}  // namespace

TEST_CASE("a hello of another version is read up to its version field") {
    message_bytes bytes = encode(hello_of_test());
    bytes[1] = std::byte{9};
    bytes.resize(20);
    const auto m = decode(bytes);
    REQUIRE(m);
    CHECK(std::get<hello>(*m).version == 9);
}

TEST_CASE("a sender of another version is turned away, and both sides name both versions") {
    const token_file token("a secret that both sides know");
    receiving_side b = listening(token);
    hello own_hello = hello_of_test();
    own_hello.version = link_version + 1;
    const met i(b, own_hello, token, 1, 1000);
    CHECK_FALSE(b.up());
    CHECK_FALSE(i.a.up());
    CHECK(i.a.failure().empty());  // the reply is not authenticated
    CHECK(i.a.disconnect_reason() == sentence(of_sender, link_version, link_version + 1));
    CHECK(b.log_line() == sentence(of_receiver, link_version + 1, link_version));
    CHECK(met(b, hello_of_test(), token, 2, 1000 + handshake_ns).a.up());  // the same build has come
}

TEST_CASE("unauthenticated peers of another version are logged at most every five seconds") {
    receiving_side b = listening(token_file("a secret that both sides know"));
    hello other = hello_of_test();
    other.version = link_version + 1;
    u64 log_lines = 0;
    for (u32 k = 1; k <= 100; ++k) {  // one per 100 ms
        const u64 now = k * 100 * ns_per_ms;
        b.accepted(k, now);
        b.received(k, other, now);
        for (const action& x : b.step(now))  // and they learn no more than this build's version
            if (x.kind == action::what::send) CHECK(*decode(x.bytes) == message(hello{}));
        b.closed(k);
        log_lines += b.log_line().empty() ? 0 : 1;
    }
    CHECK(log_lines == 2);
}

TEST_CASE("a sender learns that a receiver has another version, and retries without an error") {
    const token_file token("a secret that both sides know");
    sending_side a(hello_of_test(), token, 0);
    a.begin(0);
    (void)a.step(1000);
    hello other;
    other.version = link_version + 1;
    message_bytes bytes = encode(other);
    bytes.resize(9);  // what follows the version is defined by that version
    a.received(1, *decode(bytes), 1000);
    CHECK(a.failure().empty());
    CHECK(a.disconnect_reason() == sentence(of_sender, link_version + 1, link_version));
    const auto connects = [&](u64 now) {
        bool any = false;
        for (const action& x : a.step(now)) any |= x.kind == action::what::connect;
        return any;
    };
    CHECK_FALSE(connects(1000 + longest_rest_ns));
    CHECK(connects(1000 + other_version_rest_ns));
}
