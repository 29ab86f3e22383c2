// What the supervisors of two hosts send to each other: which peer is authenticated, and what an attacker on
// the network can do.

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

/// Both sides, and a man in the middle who sees every byte.
struct man_in_the_middle {
    explicit man_in_the_middle(const std::string& coordinator_token = token,
                               const std::string& partition_token = token) {
        int a[2], b[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, a) == 0);
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, b) == 0);
        coordinator = std::make_unique<sealed_stream>(
            shm::unique_fd(a[0]), sealed_stream::endpoint::coordinator, coordinator_token, now_ns());
        partition = std::make_unique<sealed_stream>(shm::unique_fd(b[0]), sealed_stream::endpoint::partition,
                                                    partition_token, now_ns());
        to_coordinator.reset(a[1]);
        to_partition.reset(b[1]);
    }
    static std::string read_all(const shm::unique_fd& from) {
        std::string all;
        char bytes[4096];
        for (ssize_t n; (n = ::read(from.get(), bytes, sizeof bytes)) > 0;)
            all.append(bytes, static_cast<std::size_t>(n));
        return all;
    }
    static void write_to(const shm::unique_fd& to, const std::string& bytes) {
        REQUIRE(::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()));
    }
    /// Whole rounds, nothing changed.
    void pass(int rounds = 6) {
        for (int k = 0; k < rounds; ++k) {
            for (json& m : coordinator->advance(now_ns())) at_coordinator.push_back(std::move(m));
            write_to_partition(read_all(to_coordinator));
            for (json& m : partition->advance(now_ns())) at_partition.push_back(std::move(m));
            if (const std::string bytes = read_all(to_partition); !bytes.empty() && !coordinator->closed())
                write_to(to_coordinator, bytes);
        }
    }
    void write_to_partition(const std::string& bytes) const {
        if (!bytes.empty() && !partition->closed()) write_to(to_partition, bytes);
    }
    std::unique_ptr<sealed_stream> coordinator, partition;
    shm::unique_fd to_coordinator, to_partition;
    std::vector<json> at_coordinator, at_partition;
};

}  // namespace

TEST_CASE("two sides that know the token receive each other's messages in order") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    man_in_the_middle b;
    b.pass();
    REQUIRE(b.coordinator->open());
    REQUIRE(b.partition->open());
    for (int k = 0; k < 50; ++k) b.coordinator->send({{"n", k}, {"text", std::string(2000, 'x')}});
    b.partition->send({{"hello", true}});
    b.pass(20);
    REQUIRE(b.at_partition.size() == 50);
    CHECK(b.at_partition[49]["n"] == 49);
    REQUIRE(b.at_coordinator.size() == 1);
}

TEST_CASE("time in which this process did not run does not count as silence of the other host") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    man_in_the_middle b;
    b.pass();
    REQUIRE(b.coordinator->open());
    u64 now = now_ns();
    const u64 received = b.coordinator->last_received_ns();
    (void)b.coordinator->advance(now += ns_per_s / 2);
    CHECK(b.coordinator->last_received_ns() == received);
    (void)b.coordinator->advance(now += 10 * ns_per_s);  // frozen
    CHECK(b.coordinator->last_received_ns() == received + 9 * ns_per_s);
}

TEST_CASE("a message that is too long is not sent, and the sender gets an error") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    man_in_the_middle b;
    b.pass();
    CHECK_FALSE(b.coordinator->send({{"text", std::string(16U << 20U, 'x')}}));
    CHECK(b.coordinator->send({{"n", 1}}));
    b.pass();
    REQUIRE(b.at_partition.size() == 1);
    CHECK(b.at_partition[0]["n"] == 1);
}

TEST_CASE("another token gets no message in, on either side") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    man_in_the_middle b(std::string(32, 'a'), std::string(32, 'b'));
    b.coordinator->send({{"n", 1}});
    b.pass();
    CHECK(b.coordinator->closed());
    CHECK(b.coordinator->wrong_token());
    CHECK_FALSE(b.partition->open());
    CHECK(b.at_partition.empty());
}

TEST_CASE("a side that answers with our own proof is not trusted") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    man_in_the_middle b;
    (void)b.coordinator->advance(now_ns());
    const std::string hello = man_in_the_middle::read_all(b.to_coordinator);
    man_in_the_middle::write_to(b.to_coordinator, hello + std::string(32, '\0'));  // its own nonce back
    (void)b.coordinator->advance(now_ns());
    CHECK(b.coordinator->closed());
    CHECK(b.coordinator->wrong_token());
}

TEST_CASE("a message that is reflected to its sender ends the connection and is not processed") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    for (const bool coordinator_sends : {true, false}) {
        CAPTURE(coordinator_sends);
        man_in_the_middle b;
        b.pass();
        sealed_stream& endpoint = coordinator_sends ? *b.coordinator : *b.partition;
        const shm::unique_fd& wire = coordinator_sends ? b.to_coordinator : b.to_partition;
        REQUIRE(endpoint.open());
        endpoint.send({{"n", 1}});
        man_in_the_middle::write_to(wire, man_in_the_middle::read_all(wire));
        CHECK(endpoint.advance(now_ns()).empty());
        CHECK(endpoint.closed());
        CHECK_THAT(endpoint.why(), contains("has an invalid authentication tag"));
    }
}

TEST_CASE("the remote side's proof, sent back to it, is not accepted as the coordinator's") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    man_in_the_middle b;
    man_in_the_middle::write_to(b.to_partition, "CRSLHST3" + std::string(32, 'x'));
    (void)b.partition->advance(now_ns());
    const std::string answer = man_in_the_middle::read_all(b.to_partition);
    REQUIRE(answer.size() == 8 + 32 + 32);
    man_in_the_middle::write_to(b.to_partition, answer.substr(8 + 32));
    (void)b.partition->advance(now_ns());
    CHECK_FALSE(b.partition->open());
    CHECK(b.partition->wrong_token());
}

TEST_CASE("another program that has the port is not taken for a host that has another token") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    for (const std::string& greeting : {std::string("SSH-2.0-x\r\n"), std::string("H"),
                                        "HTTP/1.1 400 Bad Request\r\n\r\n" + std::string(200, 'x')}) {
        CAPTURE(greeting);
        man_in_the_middle b;
        (void)b.coordinator->advance(now_ns());
        man_in_the_middle::write_to(b.to_coordinator, greeting);
        (void)b.coordinator->advance(now_ns());
        CHECK(b.coordinator->closed());
        CHECK_FALSE(b.coordinator->wrong_token());
        CHECK_THAT(b.coordinator->why(), contains("another program may use that port"));
    }
    {
        man_in_the_middle b;  // a peer of another version identifies itself by its first bytes, or closes
        (void)b.coordinator->advance(now_ns());
        man_in_the_middle::write_to(b.to_coordinator, "CRSLHST1" + std::string(64, 'x'));
        (void)b.coordinator->advance(now_ns());
        CHECK_THAT(b.coordinator->why(), contains("its version may differ"));
    }
    {
        man_in_the_middle b;
        (void)b.coordinator->advance(now_ns());
        b.to_coordinator.reset();
        (void)b.coordinator->advance(now_ns());
        CHECK_THAT(b.coordinator->why(), contains("it may be a `carousel host` of another version"));
    }
    {
        man_in_the_middle b;  // and reports the peer's version
        man_in_the_middle::write_to(b.to_partition, "CRSLHST1" + std::string(32, 'x'));
        (void)b.partition->advance(now_ns());
        CHECK(b.partition->closed());
        CHECK(man_in_the_middle::read_all(b.to_partition) == "CRSLHST3");
    }
    man_in_the_middle b;  // the received bytes may be the beginning of a longer message
    (void)b.coordinator->advance(now_ns());
    man_in_the_middle::write_to(b.to_coordinator, "CRSL");
    (void)b.coordinator->advance(now_ns());
    CHECK_FALSE(b.coordinator->closed());
}

TEST_CASE("a changed, repeated or missing message ends the connection and is ignored") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    const auto tampering = GENERATE(0, 1, 2);
    man_in_the_middle b;
    b.pass();
    b.coordinator->send({{"first", 1}});
    const std::string first = man_in_the_middle::read_all(b.to_coordinator);
    b.coordinator->send({{"second", 2}});
    const std::string second = man_in_the_middle::read_all(b.to_coordinator);
    if (tampering == 0) {
        std::string changed = first;
        changed[10] = static_cast<char>(changed[10] ^ 1);
        man_in_the_middle::write_to(b.to_partition, changed);
    } else if (tampering == 1) {
        man_in_the_middle::write_to(b.to_partition, first + first);
    } else {
        man_in_the_middle::write_to(b.to_partition, second);
    }
    const auto got = b.partition->advance(now_ns());
    CHECK(got.size() == (tampering == 1 ? 1U : 0U));
    CHECK(b.partition->closed());
    CHECK_THAT(b.partition->why(), contains("has an invalid authentication tag"));
}

TEST_CASE("bytes of an unauthenticated peer end only that connection") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    std::mt19937_64 generator(7);
    for (int round = 0; round < 200; ++round) {
        man_in_the_middle b;
        std::string noise(generator() % 300, '\0');
        for (char& c : noise) c = static_cast<char>(generator());
        if (generator() % 2 == 0) noise = "CRSLHST3" + noise;
        b.write_to_partition(noise);
        u64 now = now_ns();
        CHECK(b.partition->advance(now).empty());
        CHECK_FALSE(b.partition->open());
        // In steps: one step of 4 s would count as time in which this process did not run.
        for (u32 s = 0; s < 4; ++s) (void)b.partition->advance(now += ns_per_s);
        CHECK(b.partition->closed());
    }
}

TEST_CASE("messages sent before a connection's end are received") {
    if (!hosts::can_seal()) CAROUSEL_SKIP("built without libcrypto");
    man_in_the_middle b;
    b.pass();
    b.coordinator->send({{"last", true}});
    b.write_to_partition(man_in_the_middle::read_all(b.to_coordinator));
    b.to_partition.reset();
    const auto got = b.partition->advance(now_ns());
    REQUIRE(got.size() == 1);
    CHECK(b.partition->closed());
}
