// Both sides of a link whose frames are work for another host, and of the link that returns the answers,
// without a socket.
#include "stages/hosts/link/message.hpp"
#include "tests/stages/hosts/link_world.hpp"

using namespace carousel;
using namespace carousel::test;

namespace {

hello of_kind(link_kind k, const std::string& run = "run-a") {
    hello h = hello_of_test(run);
    h.kind = static_cast<u8>(k);
    h.by_durable = k == link_kind::work ? 1 : 0;
    return h;
}

/// Runs both sides until neither has anything left to send. Returns the frames that A has sent. `at_a`: A's
/// number of the connection, if it differs from B's.
std::vector<u64> talk(sending_side& a, receiving_side& b, u32 connection, u64 now, u32 at_a = 0) {
    std::vector<u64> frames;
    if (at_a == 0) at_a = connection;
    b.accepted(connection, now);
    for (int k = 0; k < 5; ++k) {
        for (const action& x : a.step(now)) {
            if (x.kind == action::what::send) b.received(connection, *decode(x.bytes), now);
            if (x.kind != action::what::send_frame) continue;
            frames.push_back(x.ring_sequence);
            const auto m = decode(x.bytes);
            if (const auto n = b.frame_begins(connection, std::get<frame_message>(*m), now))
                b.frame_ends(*n, true, now);
        }
        for (const action& x : b.step(now))
            if (x.kind == action::what::send) a.received(at_a, *decode(x.bytes), now);
        b.sender_is_kept();
    }
    return frames;
}

void ask(sending_side& a, u64 n) {
    frame_message m;
    m.ring_sequence = n, m.bytes = m.packed_bytes = 100;
    a.begin(n);
    a.offer(m);
}

}  // namespace

TEST_CASE("work continues at the ring's number, for any sending process or run") {
    const token_file token("a secret that both sides know");
    receiving_side b(of_kind(link_kind::work), token, "run-b", "an earlier run", 7, 4);
    sending_side a(of_kind(link_kind::work), token, 0);
    (void)talk(a, b, 1, 1000);
    REQUIRE(a.up());
    CHECK(a.first() == 7U);
    CHECK(a.remote_run() == "run-b");
    CHECK_FALSE(a.is_drained());  // frames of earlier senders are still in that ring
    b.committed(7);
    b.durable(7);
    (void)talk(a, b, 1, 1000);
    CHECK(a.is_drained());
    ask(a, 7), ask(a, 8);
    CHECK(talk(a, b, 1, 1000) == std::vector<u64>{7, 8});
    CHECK_FALSE(a.is_idle(7));
    a.frame_sent(1, 7), a.frame_sent(1, 8);
    CHECK(a.is_idle(7));
    a.forget(7);  // it was answered

    // The connection breaks: the numbering continues. Then its ring is rebuilt and requests 7 again, which no
    // sender has any more.
    a.closed(1, "gone", 1000);
    (void)talk(a, b, 2, 1000 + longest_rest_ns);
    CHECK(a.up());
    receiving_side restarted(of_kind(link_kind::work), token, "run-b", "run-a", 7, 4);
    a.closed(2, "gone", 1000 + longest_rest_ns);
    (void)talk(a, restarted, 3, 1000 + 2 * longest_rest_ns);
    CHECK(a.numbering_restarted());
    CHECK(a.failure().find("continues at frame 7 of its ring") != std::string::npos);

    // A different run there has its own numbers, even if they would fit.
    sending_side other(of_kind(link_kind::work), token, 0);
    receiving_side first(of_kind(link_kind::work), token, "run-b", "", 0, 4);
    (void)talk(other, first, 1, 1000);
    receiving_side second(of_kind(link_kind::work), token, "run-c", "", 0, 4);
    other.closed(1, "gone", 1000);
    (void)talk(other, second, 2, 1000 + longest_rest_ns);
    CHECK(other.numbering_restarted());
}

TEST_CASE("answers start at the oldest one that their sender has, one run after the other") {
    const token_file token("a secret that both sides know");
    receiving_side b(of_kind(link_kind::answers), token, "run-a", "", 0, 4);
    sending_side first(of_kind(link_kind::answers, "run-b"), token, 0);
    for (u64 n = 57; n < 60; ++n) ask(first, n);
    CHECK(talk(first, b, 1, 1000) == std::vector<u64>{57, 58, 59});
    REQUIRE(b.oldest_whole() != nullptr);
    CHECK(b.oldest_whole()->ring_sequence == 57);
    b.free_buffer(57);
    CHECK(b.oldest_whole()->ring_sequence == 58);
    b.committed(58);
    (void)talk(first, b, 1, 1000);
    first.frame_sent(1, 57);
    CHECK(first.released(57));
    b.damaged(58, 1000);  // its connection is closed, and it reconnects with all frames after it
    CHECK(b.oldest_whole() == nullptr);
    first.closed(1, "closed", 1000);
    CHECK(talk(first, b, 2, 1000 + longest_rest_ns) == std::vector<u64>{58, 59});
    CHECK(b.oldest_whole()->ring_sequence == 58);

    sending_side second(of_kind(link_kind::answers, "run-c"), token, 0);
    ask(second, 0);
    CHECK(talk(second, b, 3, 1000 + longest_rest_ns, 1) == std::vector<u64>{0});
    REQUIRE(b.oldest_whole() != nullptr);
    CHECK(b.oldest_whole()->ring_sequence == 0);
    CHECK(b.sender() == "run-c");
}

TEST_CASE("an end of a ring's link and an end of work don't take each other") {
    const token_file token("a secret that both sides know");
    receiving_side b(hello_of_test(), token, "run-b", "", 0, 4);
    sending_side a(of_kind(link_kind::work), token, 0);
    (void)talk(a, b, 1, 1000);
    CHECK_FALSE(a.up());
    CHECK_FALSE(a.numbering_restarted());
    CHECK(a.failure().empty());  // another file can fix it
    CHECK(a.disconnect_reason().find("is for instances on another host, and the other end is not") !=
          std::string::npos);
}
