// What the two sides of a link say and keep, without a socket.
#include "stages/hosts/link/message.hpp"
#include "tests/stages/hosts/link_world.hpp"
#include "tests/support/scratch_folder.hpp"

#include <sys/stat.h>

#include <fstream>

namespace {

using namespace carousel;
using namespace carousel::test;

std::vector<message> one_of_each() {
    hello h = hello_of_test();
    h.parameters = "scene";
    h.fresh.fill(7);
    frame_message f;
    f.sequence = 5, f.bytes = 100, f.time_s = 0.5;
    f.parameters = {std::byte{1}, std::byte{2}};
    return {h,
            proof_message{h.fresh, {}},
            welcome{"run-b", 3, 5, 4},
            refuse{"no"},
            f,
            ack{9},
            ping{11},
            pong{11, 12},
            stream_end{60},
            bye{"over"}};
}

/// A sender that has said hello to `b` over connection 1, and what it said last.
struct introduced {
    sending_side a;
    actions said;
    introduced(receiving_side& b, hello who, const token_file& token, u64 now) : a(std::move(who), token, 0) {
        a.begin(0);
        b.accepted(1, now);
        for (int k = 0; k < 4; ++k) {
            said = a.step(now);
            for (const action& x : said)
                if (x.kind == action::what::send) b.received(1, *decode(x.bytes), now);
            for (const action& x : b.step(now))
                if (x.kind == action::what::send) a.received(1, *decode(x.bytes), now);
            b.sender_is_kept();
        }
    }
};

receiving_side receiver(const token_file& token, const std::string& sender = "", u64 next = 0) {
    return {hello_of_test(), token, "run-b", sender, next, 4};
}

}  // namespace

TEST_CASE("every message comes back as it was said, and no part of one is a message") {
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

TEST_CASE("frames come through a link once each and in order, whatever breaks") {
    for (u64 seed = 1; seed <= 200; ++seed) {
        INFO("seed " << seed);
        world w(seed);
        w.run(seed % 2 == 0 ? 400 : 60);
        CHECK(w.committed == w.frames);
        CHECK(w.released == w.frames);
        CHECK(w.kept_end == w.frames);
    }
}

TEST_CASE("a sender without the token is turned away, and believes no one who hasn't it") {
    const token_file right("a secret that both sides know"), wrong("another secret of that length");
    receiving_side b = receiver(right);
    const introduced i(b, hello_of_test(), wrong, 1000);
    CHECK_FALSE(b.up());
    CHECK_FALSE(i.a.up());
    CHECK(i.a.failure().empty());  // who answers there may be anybody: no reason to end a run
    CHECK(i.a.trouble().find("does not know this link's token") != std::string::npos);
}

TEST_CASE("a refusal ends a sender only when it comes from who knows the token") {
    const token_file token("a secret that both sides know");
    sending_side a(hello_of_test(), token, 0);
    a.begin(0);
    (void)a.step(1000);
    a.received(1, refuse{"go away"}, 1000);
    CHECK(a.failure().empty());
    receiving_side b({}, token, "run-b", "", 0, 4);
    const introduced i(b, hello_of_test(), token, 1000);
    CHECK(i.a.failure().find("its frames are {} of 100 bytes, but the receiving stage is to write") == 0);
}

TEST_CASE("another run's frames are refused by a ring that has some already") {
    const token_file token("a secret that both sides know");
    receiving_side fresh = receiver(token, "run-x", 0);
    CHECK(introduced(fresh, hello_of_test(), token, 1000).a.up());
    receiving_side used = receiver(token, "run-x", 5);
    const introduced i(used, hello_of_test(), token, 1000);
    CHECK(i.a.failure().find(
              "run run-a (pipeline a) is not the one whose frames up to 4 are here (run run-x)") == 0);
}

TEST_CASE("a receiver that has lost frames which the sender has released is found, and they are counted") {
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
    CHECK(a.failure().find("frames 3 to 9 have been committed there and released here: 7 frames are lost") !=
          std::string::npos);
}

TEST_CASE("the newest sender has the link, an older process of it doesn't get it back") {
    const token_file token("a secret that both sides know");
    receiving_side b = receiver(token);
    const auto introduce = [&](u32 connection, u64 epoch) {
        hello h = hello_of_test();
        h.epoch = epoch;
        b.accepted(connection, 1000);
        b.received(connection, h, 1000);
        nonce fresh{};
        for (const action& x : b.step(1000))
            if (x.kind == action::what::send && x.connection == connection)
                fresh = std::get<proof_message>(*decode(x.bytes)).fresh;
        b.received(connection, proof_message{{}, token.prove(side::sending, h, fresh)}, 1000);
        b.sender_is_kept();
        std::vector<u32> closed;
        for (const action& x : b.step(1000))
            if (x.kind == action::what::close) closed.push_back(x.connection);
        return closed;
    };
    CHECK(introduce(1, 5).empty());
    CHECK(introduce(2, 7) == std::vector<u32>{1});
    CHECK(introduce(3, 6) == std::vector<u32>{3});
}

TEST_CASE("strangers who say nothing do not crowd out a sender") {
    const token_file token("a secret that both sides know");
    receiving_side b = receiver(token);
    for (u32 k = 100; k < 120; ++k) b.accepted(k, 1000);
    std::size_t closed = 0;
    for (const action& x : b.step(1000)) closed += x.kind == action::what::close ? 1 : 0;
    CHECK(closed == 12);
    (void)b.step(1000 + handshake_ns + 1);  // those who were let in have said nothing in time
    CHECK(introduced(b, hello_of_test(), token, 1001 + handshake_ns).a.up());
}

TEST_CASE("a silent far side is given up after a second, and tried again") {
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

TEST_CASE("a token file must be its owner's alone, and hold a secret") {
    const scratch_folder folder;
    const auto file = [&](const std::string& text, mode_t mode) {
        std::string path = (folder.path / "token").string();
        std::ofstream(path) << text;
        ::chmod(path.c_str(), mode);
        return path;
    };
    CHECK_NOTHROW(token_file::read(file("0123456789abcdef\n", 0600)));
    CHECK_THROWS_WITH(token_file::read(file("0123456789abcdef\n", 0640)),
                      Catch::Contains("others may read it"));
    CHECK_THROWS_WITH(token_file::read(file("short\n", 0600)), Catch::Contains("has 5 bytes; expected 16"));
    CHECK_THROWS_WITH(token_file::read((folder.path / "none").string()),
                      Catch::Contains("Make one for both hosts"));
    CHECK_THROWS_WITH(token_file::read(folder.path.string()), Catch::Contains("is no plain file"));
}
