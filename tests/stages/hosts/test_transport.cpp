// The transport by itself: the frames that it carries, and requests for features that this machine may lack.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/errors.hpp"
#include "shm/fd_socket.hpp"
#include "stages/hosts/link_end.hpp"
#include "stages/hosts/receiver_link.hpp"
#include "stages/hosts/ucx/implementation.hpp"
#include "stages/hosts/ucx/transport.hpp"
#include "tests/stages/hosts/frame_exchange.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace carousel;
using namespace carousel::hosts;

struct deaf final : transport::events {
    void accepted(u32) override {}
    void closed(u32, const std::string&) override {}
    void message_received(u32, std::span<const std::byte>) override {}
    std::byte* frame_begins(u32, std::span<const std::byte>, u64, u64&) override { return nullptr; }
    void frame_received(u64, bool) override {}
    void frame_sent(u32, u64) override {}
};

bool read_as_direct(const std::string& json, packing how) {
    const auto values = settings::from_json(json);
    configuration with;
    with.settings = &values;
    return sends_directly(with, how);
}

std::string refusal_of(const std::string& json, packing how) {
    try {
        (void)read_as_direct(json, how);
    } catch (const settings_error& e) {
        return e.what();
    }
    return "accepted";
}

struct notified_of_its_end final : transport::events {
    bool over = false, answered = false;
    void accepted(u32) override {}
    void closed(u32, const std::string&) override { over = true; }
    void message_received(u32, std::span<const std::byte>) override { answered = true; }
    std::byte* frame_begins(u32, std::span<const std::byte>, u64, u64&) override { return nullptr; }
    void frame_received(u64, bool) override {}
    void frame_sent(u32, u64) override {}
};

const std::string secret = "a secret that both sides know";

class receiver_of_100_bytes {
public:
    receiver_of_100_bytes(const scratch_folder& folder, u16 port, std::vector<std::byte>& room)
        : link_(set_up(folder, port, room)) {}

private:
    static receiver_link::set_up set_up(const scratch_folder& folder, u16 port,
                                        std::vector<std::byte>& room) {
        receiver_link::set_up s;
        s.where = {.address = "127.0.0.1", .token = "", .transports = "tcp", .port = port};
        s.expected.payload_bytes = room.size();
        s.token = token_file(secret);
        s.run = "run-b";
        s.figures_path = (folder.path / "figures").string();
        s.buffers = {room.data()};
        s.wake = [] {};
        return s;
    }
    receiver_link link_;
};

/// The handshake of a sender.
struct proves_the_token final : transport::events {
    hello own_hello;
    bool over = false, welcomed = false;
    std::optional<message> answer;
    proves_the_token() { own_hello.payload_bytes = 100, own_hello.run = "run-a"; }
    void accepted(u32) override {}
    void closed(u32, const std::string&) override { over = true; }
    void message_received(u32, std::span<const std::byte> bytes) override {
        const auto m = decode(bytes);
        REQUIRE(m);
        if (const auto* p = std::get_if<proof_message>(&*m))
            answer =
                proof_message{own_hello.fresh, token_file(secret).prove(side::sending, own_hello, p->fresh),
                              p->sent_ns, now_ns()};
        welcomed = welcomed || std::holds_alternative<welcome>(*m);
    }
    std::byte* frame_begins(u32, std::span<const std::byte>, u64, u64&) override { return nullptr; }
    void frame_received(u64, bool) override {}
    void frame_sent(u32, u64) override {}
};

test::sent_memory memory_of(std::vector<std::byte>& bytes) {
    return {bytes.data(), [&bytes](std::span<const std::byte> from) {
                std::memcpy(bytes.data(), from.data(), from.size());
            }};
}

}  // namespace

TEST_CASE("frames of every size come whole") {
    std::vector<std::byte> memory(test::exchanged_bytes);
    test::check_frames_of_every_size(memory_of(memory));
}

TEST_CASE("memory is released when its frame is over, even if the connection broke in it") {
    std::vector<std::byte> memory(test::exchanged_bytes);
    test::check_broken_connections(memory_of(memory));
}

TEST_CASE("a UCX without CUDA refuses to send GPU memory and names the remedy") {
    deaf events;
    std::string result = "accepted";
    try {
        const transport t(events, {.address = "127.0.0.1", .transports = "tcp", .gpu_memory = true});
    } catch (const config_error& e) {
        result = e.what();
    }
    if (result == "accepted") CAROUSEL_SKIP("this machine's UCX reaches a GPU's memory");
    CHECK(result == "memory = \"direct\": " + ucx_version() +
                        " with the transports tcp,cuda_copy can't access GPU memory here; use memory = "
                        "\"staged\", which sends from page-locked memory, or load a UCX that was built "
                        "--with-cuda");
    const transport of_the_cpu(events,
                               {.address = "127.0.0.1", .transports = "tcp"});  // the remaining ones continue
}

TEST_CASE("transport lists that accept no further name get none") {
    for (const char* all : {"all", "^sysv"}) {
        deaf events;
        std::string result;
        try {
            const transport t(events, {.address = "127.0.0.1", .transports = all, .gpu_memory = true});
        } catch (const config_error& e) {
            result = e.what();
        }
        CAPTURE(all, result);
        CHECK((result.empty() || result.find(std::string(" with the transports ") + all +
                                             " can't access GPU memory") != std::string::npos));
    }
}

TEST_CASE("frames are staged unless the settings request direct, which excludes compression") {
    CHECK_FALSE(read_as_direct("{}", packing::none));
    CHECK_FALSE(read_as_direct(R"({"memory": "staged"})", packing::zstd));
    CHECK(read_as_direct(R"({"memory": "direct"})", packing::none));
    CHECK(refusal_of(R"({"memory": "direct"})", packing::lz4)
              .starts_with("memory = \"direct\" with compress = \"lz4\": frames must be in host memory"));
    CHECK(refusal_of(R"({"memory": "gpu"})", packing::none) != "accepted");
}

TEST_CASE("UCX keeps no registered memory where the transport is TCP, which registers none") {
    const auto cache = [](const std::string& transports) {
        for (const auto& [name, value] :
             ucx_settings({.address = "127.0.0.1", .transports = transports}, "lo"))
            if (name == "RCACHE_ENABLE") return value;
        return std::string("unset");
    };
    CHECK(cache("tcp") == "n");
    CHECK(cache("tcp,self") == "try");
}

TEST_CASE("a transport leaves the environment unchanged, which other threads may be reading") {
    const auto all = [] {
        std::vector<std::string> out;
        for (char** at = environ; *at != nullptr; ++at) out.emplace_back(*at);
        return out;
    };
    const auto before = all();
    deaf events;
    const transport t(events, {.address = "127.0.0.1", .first_port = 47400});
    (void)ucx_json();
    CHECK((all() == before));  // a failure does not print the environment
}

TEST_CASE("progress_all returns while a peer sends without end") {
    constexpr u64 outstanding = 256, endless = 4000;  // frames; a call that returns in time takes far fewer
    struct slow final : transport::events {
        u32 connection = 0;
        u64 frames = 0, of_this_call = 0;
        std::atomic<bool> stop = false;
        void accepted(u32 number) override { connection = number; }
        void closed(u32, const std::string&) override { stop = true; }
        void message_received(u32, std::span<const std::byte>) override {}
        std::byte* frame_begins(u32, std::span<const std::byte>, u64, u64&) override {
            ++frames;
            if (++of_this_call >= endless) stop = true;
            for (const u64 until = now_ns() + 100'000; !stop && now_ns() < until;) {  // slower than the peer
            }
            return nullptr;
        }
        void frame_received(u64, bool) override {}
        void frame_sent(u32, u64) override {}
    } events;
    struct counter final : transport::events {
        u64 sent = 0;
        void accepted(u32) override {}
        void closed(u32, const std::string&) override {}
        void message_received(u32, std::span<const std::byte>) override {}
        std::byte* frame_begins(u32, std::span<const std::byte>, u64, u64&) override { return nullptr; }
        void frame_received(u64, bool) override {}
        void frame_sent(u32, u64) override { ++sent; }
    } sent;
    const u16 port = test::free_port();
    transport t(events, {.address = "127.0.0.1"});
    REQUIRE(t.listen(port));
    std::thread peer([&] {
        transport flood(sent, {.address = "127.0.0.1"});
        flood.connect(1, "127.0.0.1", port);
        const std::vector<std::byte> byte(1);
        for (u64 given = 0; !events.stop; flood.progress())
            while (given < sent.sent + outstanding)
                flood.send_frame(1, {}, byte.data(), byte.size(), given++);
    });
    for (const u64 until = now_ns() + 20 * ns_per_s; events.connection == 0 && now_ns() < until;)
        t.progress();
    CHECK(events.connection != 0);
    t.trust(events.connection);
    u64 most = 0;
    for (const u64 until = now_ns() + 20 * ns_per_s;
         !events.stop && events.frames < 2000 && now_ns() < until;) {
        events.of_this_call = 0;
        t.progress_all();
        most = std::max(most, events.of_this_call);
    }
    events.stop = true;
    peer.join();
    CHECK(events.frames >= 2000);
    CHECK(most < endless);
}

TEST_CASE("a transport beyond its allowance closes its peers, and accepts others after that") {
    struct listener final : transport::events {
        u32 newest = 0;
        std::vector<u32> ended;
        std::string why;
        void accepted(u32 number) override { newest = number; }
        void closed(u32 number, const std::string&) override { ended.push_back(number); }
        void broke_limits(u32, const std::string& is) override { why = is; }
        void message_received(u32, std::span<const std::byte>) override {}
        std::byte* frame_begins(u32, std::span<const std::byte>, u64, u64&) override { return nullptr; }
        void frame_received(u64, bool) override {}
        void frame_sent(u32, u64) override {}
    } events;
    struct connecting final : transport::events {
        std::set<u32> closed_numbers;
        void accepted(u32) override {}
        void closed(u32 number, const std::string&) override { closed_numbers.insert(number); }
        void message_received(u32, std::span<const std::byte>) override {}
        std::byte* frame_begins(u32, std::span<const std::byte>, u64, u64&) override { return nullptr; }
        void frame_received(u64, bool) override {}
        void frame_sent(u32, u64) override {}
    } peer_events;
    const u16 port = test::free_port();
    ::setenv("UCX_CM_REUSEADDR", "y", 1);  // as set_ucx_environment() does
    transport t(events, {.address = "127.0.0.1", .allowance = 32U << 20U});
    transport peer(peer_events, {.address = "127.0.0.1"});
    REQUIRE(t.listen(port));
    const auto until = [&](const std::function<bool()>& so) {
        for (const u64 end = now_ns() + 5 * ns_per_s; !so() && now_ns() < end;)
            t.progress_all(), peer.progress();
        return so();
    };
    for (u32 number = 1; number <= 2; ++number) {
        peer.connect(number, "127.0.0.1", port);
        REQUIRE(until([&] { return events.newest == number; }));
        if (number == 1) t.trust(number);
    }
    std::vector<std::byte> held(1);
    if (memory_watch::allocated_bytes() == 0) CAROUSEL_SKIP("malloc() keeps no account of what it gave");
    held.resize(64U << 20U);  // as UCX would for a message that announces that length
    CHECK(until([&] { return events.ended == std::vector<u32>{2, 1}; }));  // the one without the token first
    CHECK_THAT(events.why, test::contains("32 MiB"));
    u32 number = 2;
    // The transport listens again as soon as UCX is set up again. One attempt at a time: UCX 1.13 may end the
    // process if a listener is destroyed while others are connecting.
    CHECK(until([&] {
        if (number == 2 || peer_events.closed_numbers.contains(number))
            peer.connect(++number, "127.0.0.1", port);
        return events.newest == 3;
    }));
    for (const u64 end = now_ns() + 20 * ns_per_ms; now_ns() < end;) t.progress_all(), peer.progress();
    CHECK(events.ended.size() == 2);  // what the process still holds no longer counts
}

TEST_CASE("a peer without the token that sends more than 4 KiB is closed, and no answer is sent") {
    const scratch_folder folder;
    const u16 port = test::free_port();
    std::vector<std::byte> room(100);
    const receiver_of_100_bytes b(folder, port, room);
    const auto outcome = [&](const std::string& run) {
        notified_of_its_end events;
        transport t(events, {.address = "127.0.0.1"});
        hello h;
        h.run = run;
        for (u32 connection = 1; connection < 100; ++connection) {  // the receiver may not listen yet
            events.over = false;
            t.connect(connection, "127.0.0.1", port);
            t.send(connection, encode(h));
            const u64 since = now_ns();
            while (!events.over && !events.answered)
                if (!t.progress()) t.wait(ns_per_ms);
            if (events.answered) return "answered";
            if (run.size() > 1000 && now_ns() - since > 5 * ns_per_ms) return "closed";
        }
        return "never accepted";
    };
    CHECK(outcome("short") == std::string("answered"));
    CHECK(outcome(std::string(5000, 'x')) == std::string("closed"));
}

TEST_CASE("a sender of a frame with a wrong length is disconnected at once") {
    const scratch_folder folder;
    const u16 port = test::free_port();
    std::vector<std::byte> room(100), sent(60);
    const receiver_of_100_bytes b(folder, port, room);
    frame_message m;
    m.bytes = m.packed_bytes = room.size();
    for (const std::vector<std::byte>& header : {encode(m), encode(ping{1}), std::vector<std::byte>(7)}) {
        proves_the_token events;
        events.own_hello.epoch = 1;
        transport t(events, {.address = "127.0.0.1", .transports = "tcp"});
        u32 connection = 0;
        const u64 until = now_ns() + 10 * ns_per_s;
        while (!events.welcomed && now_ns() < until) {  // the receiver's thread may not listen yet
            events.over = false;
            t.connect(++connection, "127.0.0.1", port);
            t.send(connection, encode(events.own_hello));
            while (!events.welcomed && !events.over) {
                if (!t.progress()) t.wait(ns_per_ms);
                if (events.answer) t.send(connection, encode(*std::exchange(events.answer, std::nullopt)));
            }
        }
        REQUIRE(events.welcomed);
        t.send_frame(connection, header, sent.data(), sent.size(), 0);
        for (const u64 end = now_ns() + handshake_ns / 2; !events.over && now_ns() < end;)
            if (!t.progress()) t.wait(ns_per_ms);
        CHECK(events.over);
    }
}
