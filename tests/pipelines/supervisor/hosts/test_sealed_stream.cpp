// What the supervisors of two hosts say to each other: who is believed, and what a stranger on the way can
// do.

#include <sys/socket.h>
#include <unistd.h>

#include <random>

#include "core/clock.hpp"
#include "supervisor/hosts/remote_host.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

using namespace carousel;
using namespace carousel::supervisor;
using carousel::test::contains;
using nlohmann::json;

namespace {

const std::string token(32, 't');

/// Both sides, and a man between them who sees every byte.
struct between {
    explicit between(const std::string& near_token = token, const std::string& far_token = token) {
        int a[2], b[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, a) == 0);
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, b) == 0);
        near = std::make_unique<sealed_stream>(shm::unique_fd(a[0]), sealed_stream::side::near, near_token,
                                               now_ns());
        far = std::make_unique<sealed_stream>(shm::unique_fd(b[0]), sealed_stream::side::far, far_token,
                                              now_ns());
        to_near.reset(a[1]);
        to_far.reset(b[1]);
    }
    static std::string heard(const shm::unique_fd& from) {
        std::string all;
        char bytes[4096];
        for (ssize_t n; (n = ::read(from.get(), bytes, sizeof bytes)) > 0;)
            all.append(bytes, static_cast<std::size_t>(n));
        return all;
    }
    static void say(const shm::unique_fd& to, const std::string& bytes) {
        REQUIRE(::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()));
    }
    /// Whole rounds, nothing changed.
    void pass(int rounds = 6) {
        for (int k = 0; k < rounds; ++k) {
            for (json& m : near->advance(now_ns())) at_near.push_back(std::move(m));
            say_far(heard(to_near));
            for (json& m : far->advance(now_ns())) at_far.push_back(std::move(m));
            if (const std::string bytes = heard(to_far); !bytes.empty() && !near->closed())
                say(to_near, bytes);
        }
    }
    void say_far(const std::string& bytes) const {
        if (!bytes.empty() && !far->closed()) say(to_far, bytes);
    }
    std::unique_ptr<sealed_stream> near, far;
    shm::unique_fd to_near, to_far;
    std::vector<json> at_near, at_far;
};

}  // namespace

TEST_CASE("two sides that know the token hear each other's messages in order") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    between b;
    b.pass();
    REQUIRE(b.near->open());
    REQUIRE(b.far->open());
    for (int k = 0; k < 50; ++k) b.near->send({{"n", k}, {"text", std::string(2000, 'x')}});
    b.far->send({{"hello", true}});
    b.pass(20);
    REQUIRE(b.at_far.size() == 50);
    CHECK(b.at_far[49]["n"] == 49);
    REQUIRE(b.at_near.size() == 1);
}

TEST_CASE("a message that is too long is not sent, and whoever sends it is told") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    between b;
    b.pass();
    CHECK_FALSE(b.near->send({{"text", std::string(16U << 20U, 'x')}}));
    CHECK(b.near->send({{"n", 1}}));
    b.pass();
    REQUIRE(b.at_far.size() == 1);
    CHECK(b.at_far[0]["n"] == 1);
}

TEST_CASE("another token gets no message in, on either side") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    between b(std::string(32, 'a'), std::string(32, 'b'));
    b.near->send({{"n", 1}});
    b.pass();
    CHECK(b.near->closed());
    CHECK(b.near->wrong_token());
    CHECK_FALSE(b.far->open());
    CHECK(b.at_far.empty());
}

TEST_CASE("a side that answers with our own proof is not believed") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    between b;
    (void)b.near->advance(now_ns());
    const std::string hello = between::heard(b.to_near);
    between::say(b.to_near, hello + std::string(32, '\0'));  // its own nonce back
    (void)b.near->advance(now_ns());
    CHECK(b.near->closed());
    CHECK(b.near->wrong_token());
}

TEST_CASE("a message that comes back to the side that sent it ends the connection unheard") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    for (const bool near_sends : {true, false}) {
        CAPTURE(near_sends);
        between b;
        b.pass();
        sealed_stream& side = near_sends ? *b.near : *b.far;
        const shm::unique_fd& wire = near_sends ? b.to_near : b.to_far;
        REQUIRE(side.open());
        side.send({{"n", 1}});
        between::say(wire, between::heard(wire));
        CHECK(side.advance(now_ns()).empty());
        CHECK(side.closed());
        CHECK_THAT(side.why(), contains("proof is wrong"));
    }
}

TEST_CASE("the far side's proof, sent back to it, is not accepted as the near side's") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    between b;
    between::say(b.to_far, "CRSLHST2" + std::string(32, 'x'));
    (void)b.far->advance(now_ns());
    const std::string answer = between::heard(b.to_far);
    REQUIRE(answer.size() == 8 + 32 + 32);
    between::say(b.to_far, answer.substr(8 + 32));
    (void)b.far->advance(now_ns());
    CHECK_FALSE(b.far->open());
    CHECK(b.far->wrong_token());
}

TEST_CASE("another program that has the port is not taken for a host that has another token") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    for (const std::string& said : {std::string("SSH-2.0-x\r\n"), std::string("H"),
                                    "HTTP/1.1 400 Bad Request\r\n\r\n" + std::string(200, 'x')}) {
        CAPTURE(said);
        between b;
        (void)b.near->advance(now_ns());
        between::say(b.to_near, said);
        (void)b.near->advance(now_ns());
        CHECK(b.near->closed());
        CHECK_FALSE(b.near->wrong_token());
        CHECK_THAT(b.near->why(), contains("another program may have that port"));
    }
    {
        between b;  // one of another version says so by its first bytes, or closes
        (void)b.near->advance(now_ns());
        between::say(b.to_near, "CRSLHST1" + std::string(64, 'x'));
        (void)b.near->advance(now_ns());
        CHECK_THAT(b.near->why(), contains("it may be one of another version"));
    }
    {
        between b;
        (void)b.near->advance(now_ns());
        b.to_near.reset();
        (void)b.near->advance(now_ns());
        CHECK_THAT(b.near->why(), contains("it may be a `carousel host` of another version"));
    }
    {
        between b;  // and is told whom it has met
        between::say(b.to_far, "CRSLHST1" + std::string(32, 'x'));
        (void)b.far->advance(now_ns());
        CHECK(b.far->closed());
        CHECK(between::heard(b.to_far) == "CRSLHST2");
    }
    between b;  // what came may be the beginning of more
    (void)b.near->advance(now_ns());
    between::say(b.to_near, "CRSL");
    (void)b.near->advance(now_ns());
    CHECK_FALSE(b.near->closed());
}

TEST_CASE(
    "a message that was changed, repeated or left out ends the connection, and nothing of it is heard") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    const auto mischief = GENERATE(0, 1, 2);
    between b;
    b.pass();
    b.near->send({{"first", 1}});
    const std::string first = between::heard(b.to_near);
    b.near->send({{"second", 2}});
    const std::string second = between::heard(b.to_near);
    if (mischief == 0) {
        std::string changed = first;
        changed[10] = static_cast<char>(changed[10] ^ 1);
        between::say(b.to_far, changed);
    } else if (mischief == 1) {
        between::say(b.to_far, first + first);
    } else {
        between::say(b.to_far, second);
    }
    const auto got = b.far->advance(now_ns());
    CHECK(got.size() == (mischief == 1 ? 1U : 0U));
    CHECK(b.far->closed());
    CHECK_THAT(b.far->why(), contains("proof is wrong"));
}

TEST_CASE("bytes of a stranger end that connection alone") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    std::mt19937_64 dice(7);
    for (int round = 0; round < 200; ++round) {
        between b;
        std::string noise(dice() % 300, '\0');
        for (char& c : noise) c = static_cast<char>(dice());
        if (dice() % 2 == 0) noise = "CRSLHST2" + noise;
        b.say_far(noise);
        CHECK(b.far->advance(now_ns()).empty());
        CHECK_FALSE(b.far->open());
        (void)b.far->advance(now_ns() + 4 * ns_per_s);
        CHECK(b.far->closed());
    }
}

TEST_CASE("what was said before a connection's end is heard") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    between b;
    b.pass();
    b.near->send({{"last", true}});
    b.say_far(between::heard(b.to_near));
    b.to_far.reset();
    const auto got = b.far->advance(now_ns());
    REQUIRE(got.size() == 1);
    CHECK(b.far->closed());
}
