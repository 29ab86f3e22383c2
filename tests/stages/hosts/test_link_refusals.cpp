// Which senders a receiving side refuses or sends away, what it logs about that, and what it advises.
#include "stages/hosts/link/message.hpp"
#include "tests/stages/hosts/link_world.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;

/// The number of times that `b` logs something in `seconds` while a sender tries to connect every 300 ms.
u64 lines_of(receiving_side& b, const hello& sender, const token_file& token, u64 seconds) {
    u64 lines = 0;
    for (u64 now = 1000; now < seconds * ns_per_s; now += 300 * ns_per_ms) {
        const introduced i(b, sender, token, now);
        CHECK_FALSE(i.a.up());
        lines += b.log_line().empty() ? 0 : 1;
        b.closed(1);
    }
    return lines;
}

}  // namespace

TEST_CASE("a run that continues a lost one is accepted, but skips no frames") {
    const token_file token("a secret that both sides know");
    hello successor = hello_of_test("run-c");
    successor.begins = 4;
    const auto meet = [&](receiving_side b) {
        introduced i(b, successor, token, 1000);
        return std::pair(i.a.up(), i.a.failure());
    };
    CHECK(meet(receiver(token, "run-a", 5)).first);
    CHECK(meet(receiver(token, "run-a", 4)).first);
    const auto [up, why] = meet(receiver(token, "run-a", 3));  // frame 3 would be left out
    CHECK_FALSE(up);
    CHECK(why.find("end the receiving run as well and start again") != std::string::npos);

    successor.begins = 0;  // it does not know what the lost one had forwarded
    CHECK_FALSE(meet(receiver(token, "run-a", 5)).first);
    receiving_side in_one_file = receiver(token, "run-a", 5);
    in_one_file.accepts_successors();
    CHECK(meet(in_one_file).first);

    receiving_side late = receiver(token, "", 7);  // but the sender has 0 to 6
    const introduced i(late, hello_of_test(), token, 1000);
    CHECK_FALSE(i.a.up());
    CHECK(i.a.failure().empty());
    CHECK(i.a.disconnect_reason().find("frames 0 to 6 would be skipped") != std::string::npos);
}

TEST_CASE("a durable sender that heard less than another gets a successor beyond its oldest frame") {
    const token_file token("a secret that both sides know");
    hello durable = hello_of_test();
    durable.by_durable = 1;
    const auto meets = [&](u64 first, bool has_other_links) {
        receiving_side successor = receiver(token, "", first);
        if (has_other_links) successor.expect_other_links();
        const introduced i(successor, durable, token, 1000);
        return std::pair(i.a.up(), i.a.disconnect_reason() + successor.warning());
    };
    const auto [up, disconnect_text] = meets(16, true);
    CHECK(up);
    CHECK(disconnect_text.find("frames 0 to 15 are skipped, although the sending host has kept them") == 0);
    CHECK_FALSE(meets(17, true).first);         // more than it can have in flight: a wrong --first
    const auto [alone, why] = meets(1, false);  // no host has received more than that one sender's
    CHECK_FALSE(alone);
    CHECK(why.find("end the receiving run, and start it with --first 0") != std::string::npos);
}

TEST_CASE("a durable sender that keeps fewer frames than the receiver's checkpoints need is refused") {
    const token_file token("a secret that both sides know");
    hello needed = hello_of_test();
    needed.by_durable = 8;
    for (const u8 kept : {0, 7, 8, 16}) {
        CAPTURE(kept);
        receiving_side b = receiver(token, "", 0, needed);
        hello own = hello_of_test();
        own.by_durable = kept;  // 0: the receiver then uses no checkpoint
        const introduced i(b, own, token, 1000);
        CHECK(i.a.up() == (kept != 7));
        CHECK((i.a.disconnect_reason().find(
                   "it keeps 7 frames, but the receiving run makes a checkpoint every 8 "
                   "frames") != std::string::npos) == (kept == 7));
    }
}

TEST_CASE("a host downstream of a durable one learns how its successor is accepted from below") {
    const token_file token("a secret that both sides know");
    hello durable_successor = hello_of_test("run-c");  // from frame 0: no host had received any
    receiving_side downstream = receiver(token, "run-a", 5);
    const std::string why = introduced(downstream, durable_successor, token, 1000).a.failure();
    CHECK(why.find("start the sending run with --first 5. If a durable host was lost, its new run may have "
                   "to begin at an earlier frame. In that case set successors = true for the receiving stage "
                   "downstream of that host: the stage then drops the frames that it already has") !=
          std::string::npos);
    receiving_side permissive = receiver(token, "run-a", 5);
    permissive.accepts_successors();
    CHECK(introduced(permissive, durable_successor, token, 1000).a.up());
}

TEST_CASE("a sender rejected at each attempt is reported every five seconds, in the same words") {
    const token_file token("a secret that both sides know");
    receiving_side started_too_high = receiver(token, "", 7);
    CHECK(lines_of(started_too_high, hello_of_test(), token, 12) == 3);  // sent away
    receiving_side used = receiver(token, "run-x", 5);
    CHECK(lines_of(used, hello_of_test(), token, 12) == 3);  // refused
    hello other = hello_of_test();
    other.payload_bytes = 99;
    CHECK(lines_of(used, other, token, 4) == 1);  // a different line is not delayed by those
}

TEST_CASE("a sender with other frames or parameters is rejected with both, and keeps trying") {
    const token_file token("a secret that both sides know");
    hello expected = hello_of_test();
    expected.parameters = "camera", expected.parameter_bytes = 16;
    const auto refusal_of = [&](const hello& sender) {
        receiving_side b(expected, token, "run-b", "", 0, 4);
        introduced i(b, sender, token, 1000);
        CHECK_FALSE(i.a.up());
        CHECK(i.a.failure().empty());
        return i.a.disconnect_reason();
    };
    hello sender = expected;
    sender.format = "{\"name\":\"other\"}", sender.payload_bytes = 200;
    CHECK(refusal_of(sender) ==
          "its frames are {\"name\":\"other\"} of 200 bytes, but the receiving stage writes "
          "{} of 100 bytes");
    sender = expected;
    sender.parameters = "light";
    CHECK(refusal_of(sender) ==
          "its parameters are light of 16 bytes, but the receiving pipeline's are camera of 16 "
          "bytes");
    CHECK(refusal_of(hello_of_test()) ==
          "its parameters are none of 0 bytes, but the receiving pipeline's are camera of 16 bytes");
    receiving_side b(expected, token, "run-b", "", 0, 4);
    CHECK(introduced(b, expected, token, 1000).a.up());
}

TEST_CASE("an authenticated receiver that acknowledges unsent frames releases none") {
    const token_file token("a secret that both sides know");
    hello durable = hello_of_test();
    durable.by_durable = 1;
    for (const bool by_durable : {false, true}) {
        CAPTURE(by_durable);
        receiving_side b = receiver(token);
        introduced i(b, by_durable ? durable : hello_of_test(), token, 1000);
        REQUIRE(i.a.up());
        frame_message m;
        m.bytes = m.packed_bytes = 100;
        i.a.offer(m);
        i.a.begin(1);  // incomplete: it can't have been sent
        CHECK_FALSE(i.a.released(0));
        u64 sent = 0;
        for (const action& x : i.a.step(2000)) sent += x.kind == action::what::send_frame ? 1 : 0;
        REQUIRE(sent == 1);
        i.a.frame_sent(1, 0);
        i.a.received(1, ack{0, 1000}, 3000);  // durable before it is committed
        CHECK_FALSE(i.a.released(0));
        i.a.received(1, ack{1000, 1000}, 3000);
        CHECK(i.a.released(0));
        CHECK_FALSE(i.a.released(1));
    }
}

TEST_CASE("a receiver that later claims unsent frames releases none") {
    const token_file token("a secret that both sides know");
    hello durable = hello_of_test();
    durable.by_durable = 1;
    for (const bool by_durable : {false, true}) {
        CAPTURE(by_durable);
        receiving_side b = receiver(token);
        introduced i(b, by_durable ? durable : hello_of_test(), token, 1000);
        REQUIRE(i.a.up());
        i.a.begin(1);
        u64 now = 1000;
        const auto comes_back_with = [&](u64 next) {
            now += 10 * ns_per_s;
            i.a.closed(i.connection, "gone", now);
            i.connect(receiver(token, "run-a", next), now += longest_rest_ns);
            return i.a.up();
        };
        CHECK_FALSE(comes_back_with(1'000'000));
        CHECK(i.a.failure().empty());
        CHECK(i.a.disconnect_reason().find(
                  "(run run-b) reports that it has the frames below 1000000, but "
                  "this side has sent only those below 0, so the program there belongs to another stream") !=
              std::string::npos);
        CHECK_FALSE(i.a.released(0));
        CHECK(comes_back_with(16) == by_durable);  // a durable host may leave that many out
        CHECK_FALSE(comes_back_with(100));
    }
}

TEST_CASE("the first welcome of a process may have frames that this process has not sent") {
    const token_file token("a secret that both sides know");
    receiving_side b = receiver(token, "run-a", 5);  // a predecessor of that process sent them
    introduced i(b, hello_of_test(), token, 1000);
    REQUIRE(i.a.up());
    CHECK(i.a.released(4));
    i.a.closed(1, "gone", 2000);
    i.connect(receiver(token, "run-a", 5), 2000 + longest_rest_ns);
    CHECK(i.a.up());
}
