// The transport by itself: frames that it carries, and what it is asked for that this machine may not have.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "core/errors.hpp"
#include "shm/fd_socket.hpp"
#include "stages/hosts/link_settings.hpp"
#include "stages/hosts/receiver_link.hpp"
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
    void message_came(u32, std::span<const std::byte>) override {}
    std::byte* frame_begins(u32, std::span<const std::byte>, u64, u64&) override { return nullptr; }
    void frame_came(u64, bool) override {}
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

struct told_of_its_end final : transport::events {
    bool over = false, answered = false;
    void accepted(u32) override {}
    void closed(u32, const std::string&) override { over = true; }
    void message_came(u32, std::span<const std::byte>) override { answered = true; }
    std::byte* frame_begins(u32, std::span<const std::byte>, u64, u64&) override { return nullptr; }
    void frame_came(u64, bool) override {}
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

TEST_CASE("memory is nobody's to read when its frame is over, though the connection broke in it") {
    std::vector<std::byte> memory(test::exchanged_bytes);
    test::check_broken_connections(memory_of(memory));
}

TEST_CASE("a UCX without CUDA refuses to send from a GPU's memory, and says what to do") {
    deaf events;
    std::string said = "accepted";
    try {
        const transport t(events, {.address = "127.0.0.1", .transports = "tcp", .gpu_memory = true});
    } catch (const config_error& e) {
        said = e.what();
    }
    if (said == "accepted") CAROUSEL_SKIP("this machine's UCX reaches a GPU's memory");
    CHECK(said == "memory = \"direct\": " + ucx_version() +
                      " with the transports tcp,cuda_copy reaches no GPU's memory here; take memory = "
                      "\"staged\", which sends from page-locked memory, or have a UCX loaded that was built "
                      "--with-cuda");
    const transport of_the_cpu(events,
                               {.address = "127.0.0.1", .transports = "tcp"});  // what is left goes on
}

TEST_CASE("lists of transports that take no further name get none") {
    for (const char* all : {"all", "^sysv"}) {
        deaf events;
        std::string said;
        try {
            const transport t(events, {.address = "127.0.0.1", .transports = all, .gpu_memory = true});
        } catch (const config_error& e) {
            said = e.what();
        }
        CAPTURE(all, said);
        CHECK((said.empty() || said.find(std::string(" with the transports ") + all + " reaches no GPU's") !=
                                   std::string::npos));
    }
}

TEST_CASE("frames are staged unless the settings say direct, and direct ones can't be compressed") {
    CHECK_FALSE(read_as_direct("{}", packing::none));
    CHECK_FALSE(read_as_direct(R"({"memory": "staged"})", packing::zstd));
    CHECK(read_as_direct(R"({"memory": "direct"})", packing::none));
    CHECK(refusal_of(R"({"memory": "direct"})", packing::lz4)
              .starts_with("memory = \"direct\" with compress = \"lz4\": the CPU compresses frames"));
    CHECK(refusal_of(R"({"memory": "gpu"})", packing::none) != "accepted");
}

TEST_CASE("UCX keeps no registered memory where the transport is TCP, which registers none") {
    deaf events;
    const auto cache = [] {
        const char* const said = std::getenv("UCX_RCACHE_ENABLE");
        return std::string(said != nullptr ? said : "unset");
    };
    const transport tcp(events, {.address = "127.0.0.1"});
    CHECK(cache() == "n");
    const transport more(events, {.address = "127.0.0.1", .transports = "tcp,self"});
    CHECK(cache() == "try");
}

TEST_CASE("who sends a frame of another length than its header says is cut off at once") {
    const scratch_folder folder;
    const u16 port = test::free_port();
    std::vector<std::byte> room(100), sent(60);
    receiver_link::set_up s;
    s.where = {.address = "127.0.0.1", .token = "", .transports = "tcp", .port = port};
    s.expected.payload_bytes = room.size();
    s.token = token_file("a secret that both sides know");
    s.run = "run-b";
    s.figures_path = (folder.path / "figures").string();
    s.buffers = {room.data()};
    s.wake = [] {};
    receiver_link b(std::move(s));
    frame_message m;
    m.bytes = m.packed_bytes = room.size();
    for (const std::vector<std::byte>& header : {encode(m), encode(ping{1}), std::vector<std::byte>(7)}) {
        told_of_its_end events;
        transport t(events, {.address = "127.0.0.1", .transports = "tcp"});
        const auto until = [&](const bool& so) {
            for (const u64 end = now_ns() + handshake_ns / 2; !so && now_ns() < end;)
                if (!t.progress()) t.wait(ns_per_ms);
            return so;
        };
        u32 connection = 0;
        while (!events.answered && connection < 20) {  // the receiver's thread may not listen yet
            events.over = false;
            t.connect(++connection, "127.0.0.1", port);
            t.send(connection, encode(hello{}));
            while (!events.answered && !events.over)
                if (!t.progress()) t.wait(ns_per_ms);
        }
        REQUIRE(events.answered);
        t.send_frame(connection, header, sent.data(), sent.size(), 0);
        CHECK(until(events.over));
    }
}
