// The messages and the state of the two sides of a link, without a socket.
#include <numeric>

#include "stages/hosts/link/message.hpp"
#include "tests/stages/hosts/link_world.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;

std::vector<message> one_of_each() {
    hello h = hello_of_test();
    h.parameters = "scene";
    h.fresh.fill(7);
    frame_message f;
    f.ring_sequence = 5, f.bytes = f.packed_bytes = 100, f.time_s = 0.5, f.frame_number = 6,
    f.capture_ns = 77, f.clock = 1;
    f.parameters = {std::byte{1}, std::byte{2}};
    f.metadata = {std::byte{3}};
    f.used.planes = 5, f.used.of[0] = {1, 2, 3, 4}, f.used.of[2] = {5, 6, 7, 8};
    return {h,
            proof_message{h.fresh, {}, 3, 4},
            welcome{"run-b", 3, 2, 5, 4},
            refuse{"no"},
            f,
            ack{9, 8},
            ping{11},
            pong{11, 12},
            stream_end{60},
            bye{"over"}};
}

}  // namespace

TEST_CASE("every message is read as it was written, and no part of one is a message") {
    for (const message& m : one_of_each()) {
        const message_bytes bytes = encode(m);
        const auto back = decode(bytes);
        REQUIRE(back);
        CHECK(*back == m);
        for (std::size_t n = 0; n < bytes.size(); ++n) CHECK_FALSE(decode(std::span(bytes).first(n)));
        message_bytes longer = bytes;
        longer.push_back(std::byte{0});
        CHECK_FALSE(decode(longer));
    }
}

TEST_CASE("frames pass a link once each and in order after any kind of failure") {
    for (u64 seed = 1; seed <= 200; ++seed) {
        INFO("seed " << seed);
        world w(seed);
        w.run(seed % 2 == 0 ? 400 : 60);
        CHECK(w.committed == w.frames);
        CHECK(w.released == w.frames);
        CHECK(w.kept_end == w.frames);
    }
}

TEST_CASE("a sender without the token is rejected and trusts no peer without it") {
    const token_file right("a secret that both sides know"), wrong("another secret of that length");
    receiving_side b = receiver(right);
    const introduced i(b, hello_of_test(), wrong, 1000);
    CHECK_FALSE(b.up());
    CHECK_FALSE(i.a.up());
    CHECK(i.a.failure().empty());  // the peer there is not authenticated: no reason to end a run
    CHECK(i.a.disconnect_reason().find("has another token for this link") != std::string::npos);
}

TEST_CASE("a refusal ends a sender only if the peer has the token") {
    const token_file token("a secret that both sides know");
    sending_side a(hello_of_test(), token, 0);
    a.begin(0);
    (void)a.step(1000);
    a.received(1, refuse{"go away"}, 1000);
    CHECK(a.failure().empty());
    receiving_side b = receiver(token, "another-run", 3);
    const introduced i(b, hello_of_test(), token, 1000);
    CHECK(i.a.failure().find("end the receiving run as well and start again") != std::string::npos);
}

TEST_CASE("another run's frames are refused by a ring that has some already") {
    const token_file token("a secret that both sides know");
    receiving_side fresh = receiver(token, "run-x", 0);
    CHECK(introduced(fresh, hello_of_test(), token, 1000).a.up());
    receiving_side used = receiver(token, "run-x", 5);
    const introduced i(used, hello_of_test(), token, 1000);
    CHECK(i.a.failure().find("the sending run run-a (pipeline a) is a new run, but the frames up to 4 were "
                             "received from run run-x") == 0);
}

TEST_CASE("a receiver that lost frames released by the sender is found, and they are counted") {
    const token_file token("a secret that both sides know");
    receiving_side b = receiver(token, "run-a", 3);
    sending_side a(hello_of_test(), token, 0);
    a.begin(10);  // 0 to 9 are released
    b.accepted(1, 1000);
    for (int k = 0; k < 4; ++k) {
        for (const action& x : a.step(1000))
            if (x.kind == action::what::send) b.received(1, *decode(x.bytes), 1000);
        for (const action& x : b.step(1000))
            if (x.kind == action::what::send) a.received(1, *decode(x.bytes), 1000);
    }
    CHECK(a.failure().find("frames 3 to 9 were committed there and released here: 7 frames are lost") !=
          std::string::npos);
}

/// What `b` sends and closes when a peer with that token connects and sends HELLO.
struct introduction {
    std::vector<u32> closed;
    std::optional<welcome> welcomed;
    introduction(receiving_side& b, u32 connection, u64 epoch, const token_file& token) {
        hello h = hello_of_test();
        h.epoch = epoch;
        b.accepted(connection, 1000);
        b.received(connection, h, 1000);
        nonce fresh{};
        for (const action& x : b.step(1000))
            if (x.kind == action::what::send && x.connection == connection)
                fresh = std::get<proof_message>(*decode(x.bytes)).fresh;
        b.received(connection, proof_message{{}, token.prove(side::sending, h, fresh), 0, 0}, 1000);
        b.sender_is_kept();
        inspect(b.step(1000));
    }
    void inspect(const actions& sent) {
        for (const action& x : sent) {
            if (x.kind == action::what::close) closed.push_back(x.connection);
            if (x.kind != action::what::send) continue;
            const auto m = decode(x.bytes);
            if (m && std::holds_alternative<welcome>(*m)) welcomed = std::get<welcome>(*m);
        }
    }
};

frame_message frame_of_test(u64 ring_sequence, u64 epoch) {
    frame_message m;
    m.ring_sequence = ring_sequence, m.epoch = epoch, m.bytes = m.packed_bytes = 100;
    return m;
}

TEST_CASE("the newest sender has the link, an older process of it doesn't get it back") {
    const token_file token("a secret that both sides know");
    receiving_side b = receiver(token);
    CHECK(introduction(b, 1, 5, token).closed.empty());
    CHECK(introduction(b, 2, 7, token).closed == std::vector<u32>{1});
    CHECK(introduction(b, 3, 6, token).closed == std::vector<u32>{3});
}

TEST_CASE("a duplicate frame is acknowledged and dropped, a gap ends its connection") {
    const token_file token("a secret that both sides know");
    receiving_side b = receiver(token);
    introduced i(b, hello_of_test(), token, 1000);
    REQUIRE(i.a.up());
    for (u64 n = 0; n < 2; ++n) {
        frame_message m;
        m.ring_sequence = n, m.bytes = m.packed_bytes = 100;
        i.a.begin(n);
        i.a.offer(m);
    }
    std::vector<frame_message> sent;
    for (const action& x : i.a.step(1000))
        if (x.kind == action::what::send_frame) sent.push_back(std::get<frame_message>(*decode(x.bytes)));
    REQUIRE(sent.size() == 2);
    const auto room = b.frame_begins(1, sent[0], 1000);
    REQUIRE(room);
    b.frame_ends(*room, true, 1000);
    (void)b.step(1000);
    CHECK_FALSE(b.frame_begins(1, sent[0], 1000));
    CHECK(b.up());
    bool acknowledged = false;
    for (const action& x : b.step(1000)) {
        const auto m = decode(x.bytes);
        if (m && std::holds_alternative<ack>(*m)) acknowledged = std::get<ack>(*m).committed == 0;
    }
    CHECK(acknowledged);  // complete here, but not committed: it is not acknowledged
    sent[1].ring_sequence = 2;
    CHECK_FALSE(b.frame_begins(1, sent[1], 1000));
    CHECK_FALSE(b.up());
}

TEST_CASE("a frame whose header and bytes do not match ends its connection with a one-sentence error") {
    const token_file token("a secret that both sides know");
    receiving_side b = receiver(token);
    REQUIRE(introduction(b, 1, 5, token).welcomed);
    (void)b.log_line();
    b.accepted(2, 1000);
    b.frame_is_damaged(2);  // from an unauthenticated peer: not logged
    CHECK(b.up());
    CHECK(b.log_line().empty());
    b.frame_is_damaged(1);
    CHECK_FALSE(b.up());
    CHECK(b.log_line() ==
          "the header and the bytes of a received frame do not match, so its sender is disconnected");
    u32 closed = 0;
    for (const action& x : b.step(1000)) closed += x.kind == action::what::close ? 1 : 0;
    CHECK(closed == 2);
    CHECK(introduction(b, 3, 6, token).welcomed);  // the sender connects again
}

TEST_CASE("a receiver accepts no peer without the token") {
    const token_file right("a secret that both sides know"), wrong("another secret of that length");
    receiving_side b = receiver(right);
    CHECK(introduction(b, 1, 5, wrong).closed == std::vector<u32>{1});
    CHECK_FALSE(b.up());
    CHECK(introduction(b, 2, 5, right).welcomed);
}

TEST_CASE("a sender is accepted only after the last write of its predecessor into the same memory") {
    const token_file token("a secret that both sides know");
    receiving_side b = receiver(token);
    REQUIRE(introduction(b, 1, 5, token).welcomed);
    const auto room = b.frame_begins(1, frame_of_test(0, 5), 1000);
    REQUIRE(room);
    introduction next(b, 2, 6, token);
    CHECK_FALSE(next.welcomed);
    b.frame_ends(*room, false, 1000);
    next.inspect(b.step(1000));
    REQUIRE(next.welcomed);
    CHECK(next.welcomed->next == 0);
}

TEST_CASE("a damaged frame is requested again, on a new connection, with those after it") {
    const token_file token("a secret that both sides know");
    receiving_side b = receiver(token);
    REQUIRE(introduction(b, 1, 5, token).welcomed);
    for (u64 n = 0; n < 3; ++n) {
        const auto room = b.frame_begins(1, frame_of_test(n, 5), 1000);
        REQUIRE(room);
        b.frame_ends(*room, true, 1000);
    }
    b.free_buffer(0);
    b.committed(1);
    b.damaged(1, 1000);
    CHECK_FALSE(b.up());
    CHECK(b.whole(1) == nullptr);
    CHECK(b.whole(2) == nullptr);
    const introduction next(b, 2, 6, token);
    REQUIRE(next.welcomed);
    CHECK(next.welcomed->next == 1);
    CHECK(next.welcomed->committed == 1);
}

TEST_CASE("a frame is released when the transport has finished with its memory") {
    const token_file token("a secret that both sides know");
    receiving_side b = receiver(token);
    introduced i(b, hello_of_test(), token, 1000);
    REQUIRE(i.a.up());
    i.a.begin(0);
    i.a.offer(frame_of_test(0, 0));
    (void)i.a.step(1000);
    b.committed(1);  // a predecessor of that process had received it
    for (const action& x : b.step(1000))
        if (x.kind == action::what::send) i.a.received(1, *decode(x.bytes), 1000);
    CHECK_FALSE(i.a.released(0));
    i.a.frame_sent(1, 0);
    CHECK(i.a.released(0));
}

TEST_CASE("any number of silent unauthenticated peers does not keep out a sender") {
    const token_file token("a secret that both sides know");
    receiving_side b = receiver(token);
    for (u32 k = 100; k < 120; ++k) b.accepted(k, 1000);
    std::vector<u32> closed;
    for (const action& x : b.step(1000))
        if (x.kind == action::what::close) closed.push_back(x.connection);
    std::vector<u32> oldest(12);
    std::iota(oldest.begin(), oldest.end(), 100);
    CHECK(closed == oldest);
    const introduced i(b, hello_of_test(), token,
                       1000);  // accepted at once, although eight connections are in their handshake
    CHECK(i.a.up());
    for (u32 k = 200; k < 220; ++k) b.accepted(k, 2000);
    CHECK(b.up());
    (void)b.step(1000 + handshake_ns + 1);  // a peer that has sent nothing in time is closed, too
    std::size_t left = 0;
    for (const action& x : b.step(2001 + handshake_ns)) left += x.kind == action::what::close ? 1 : 0;
    CHECK(left == 8);
}

TEST_CASE("a silent remote side is disconnected after a second, and retried") {
    const token_file token("a secret that both sides know");
    receiving_side b = receiver(token);
    introduced i(b, hello_of_test(), token, 1000);
    REQUIRE(i.a.up());
    (void)i.a.step(1000 + dead_after_ns);
    CHECK(i.a.up());
    (void)i.a.step(1000 + dead_after_ns + 1);
    CHECK_FALSE(i.a.up());
    (void)b.step(1001 + dead_after_ns);
    CHECK_FALSE(b.up());
    bool again = false;
    for (const action& x : i.a.step(1001 + dead_after_ns + longest_rest_ns))
        again |= x.kind == action::what::connect;
    CHECK(again);
}

TEST_CASE("time in which this process did not run does not count as silence of the remote side") {
    const token_file token("a secret that both sides know");
    receiving_side b = receiver(token);
    introduced i(b, hello_of_test(), token, 1000);
    REQUIRE(i.a.up());
    const u64 stopped = 10 * ns_per_s;
    i.a.exclude(stopped, 1000 + stopped);
    b.exclude(stopped, 1000 + stopped);
    i.a.exclude(stopped, 1000 + stopped);  // a message that arrived in the meantime does not move it further
    b.exclude(stopped, 1000 + stopped);
    (void)i.a.step(1000 + stopped + dead_after_ns);
    (void)b.step(1000 + stopped + dead_after_ns);
    CHECK(i.a.up());
    CHECK(b.up());
    (void)i.a.step(1001 + stopped + dead_after_ns);
    (void)b.step(1001 + stopped + dead_after_ns);
    CHECK_FALSE(i.a.up());
    CHECK_FALSE(b.up());
}

TEST_CASE("a sender that waits for the disk there keeps frames that are only committed") {
    const token_file token("a secret that both sides know");
    receiving_side b = receiver(token);
    hello own_hello = hello_of_test();
    own_hello.by_durable = 1;
    introduced i(b, own_hello, token, 1000);
    REQUIRE(i.a.up());
    CHECK(b.wants_durable());
    CHECK(b.clock(1000));  // from the handshake on
    for (u64 n = 0; n < 4; ++n) {
        frame_message m;
        m.ring_sequence = n, m.bytes = m.packed_bytes = 100;
        i.a.begin(n);
        i.a.offer(m);
    }
    u32 sent = 0;
    for (const action& x : i.a.step(1000)) sent += x.kind == action::what::send_frame ? 1 : 0;
    CHECK(sent == 4);
    for (u64 n = 0; n < 4; ++n) i.a.frame_sent(1, n);
    const auto answer = [&] {
        for (const action& x : b.step(1000))
            if (x.kind == action::what::send) i.a.received(1, *decode(x.bytes), 1000);
    };
    b.committed(3);
    answer();
    CHECK_FALSE(i.a.released(0));
    b.durable(9);  // it can't exceed what is committed
    answer();
    CHECK(i.a.released(2));
    CHECK_FALSE(i.a.released(3));

    // Its ring is lost with all committed frames, but its sinks' files exist: it continues where they end.
    receiving_side again = receiver(token, "run-a", 3);
    i.a.closed(1, "gone", 1000);
    const u64 later = 1000 + longest_rest_ns;
    again.accepted(2, later);
    std::vector<u64> frames;
    for (int k = 0; k < 4; ++k) {
        for (const action& x : i.a.step(later)) {
            if (x.kind == action::what::send) again.received(2, *decode(x.bytes), later);
            if (x.kind == action::what::send_frame) frames.push_back(x.ring_sequence);
        }
        for (const action& x : again.step(later))
            if (x.kind == action::what::send) i.a.received(2, *decode(x.bytes), later);
        again.sender_is_kept();
    }
    CHECK(frames == std::vector<u64>{3});

    // A receiver that starts again learns the first frame, and no frame is abandoned.
    receiving_side fresh = receiver(token, "", 0);
    i.a.closed(2, "gone", later);
    const u64 at_last = later + longest_rest_ns;
    fresh.accepted(3, at_last);
    for (int k = 0; k < 4; ++k) {
        for (const action& x : i.a.step(at_last))
            if (x.kind == action::what::send) fresh.received(3, *decode(x.bytes), at_last);
        for (const action& x : fresh.step(at_last))
            if (x.kind == action::what::send) i.a.received(3, *decode(x.bytes), at_last);
        fresh.sender_is_kept();
    }
    CHECK_FALSE(i.a.up());
    CHECK(i.a.failure().empty());
    CHECK(i.a.disconnect_reason().find("in its sinks' files, the others are kept here") != std::string::npos);
}
