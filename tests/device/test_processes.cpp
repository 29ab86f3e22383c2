// The behaviour that every backend must have between processes.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "device/cpu/memfd.hpp"
#include "tests/device/child.hpp"
#include "tests/device/rig.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using nlohmann::json;

namespace {

/// The words of events, in memory that both processes map.
struct shared_words {
    device::memory_handle handle = device::create_memfd("words", 4096);
    device::memfd_mapping mapping{handle};
    ~shared_words() { ::close(handle.fd); }
    std::atomic<u64>* word() { return reinterpret_cast<std::atomic<u64>*>(mapping.data()); }
};

}  // namespace

TEST_CASE("another process sees the event and the bytes of the same memory") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const test::shareable shared(1 << 20);
    const auto memory = context->map(shared.handle(), device::access::write);
    shared_words words;
    const auto event = context->make_event(words.word());
    const device::status_word ready{7, 3, static_cast<u32>(device::status_state::ready)};

    test::child other("orders");
    const json start = {{"memory", test::to_json(shared.handle())},
                        {"words", test::to_json(words.handle)},
                        {"event", test::bytes_to_json(event->export_handle())}};
    REQUIRE(other.ask(start, {words.handle.fd, shared.handle().fd}).at("imported") == true);
    // Before any record a CUDA event reads as complete: why nobody may ask before the job word says
    // SUBMITTED.
    REQUIRE(other.ask({{"do", "done"}, {"tag", 77}}).at("done") == test::on_cuda);

    test::gate gate(*context);
    gate.block(*queue);
    queue->fill(memory->data(), 0x3C, 1 << 20);
    queue->write_status(reinterpret_cast<device::status_word*>(memory->data()), ready);
    event->record(*queue, 77);
    REQUIRE(other.ask({{"do", "done"}, {"tag", 77}, {"within_ms", 50}}).at("done") == false);
    gate.open();
    REQUIRE(other.ask({{"do", "done"}, {"tag", 77}, {"within_ms", 5000}}).at("done") == true);
    // only the CPU's word has a tag
    REQUIRE(other.ask({{"do", "done"}, {"tag", 78}}).at("done") == test::on_cuda);
    const auto seen =
        other.ask({{"do", "read"}, {"at", 16}, {"count", 2000}}).at("bytes").get<std::vector<u8>>();
    REQUIRE(std::count(seen.begin(), seen.end(), 0x3C) == 2000);
    REQUIRE(other.ask({{"do", "check"}, {"sequence", 7}, {"epoch", 3}, {"state", ready.state}}).at("torn") ==
            0);
    REQUIRE(other.ask({{"do", "check"}, {"sequence", 8}, {"epoch", 3}, {"state", ready.state}}).at("torn") ==
            1);

    // And back: what the other process writes is here, in the same allocation, without any copy in between.
    other.ask({{"do", "fill"}, {"at", 5000}, {"value", 0x99}, {"count", 100}});
    const std::vector<u8> back = test::read_back(*context, *queue, memory->data() + 5000, 100);
    REQUIRE(std::count(back.begin(), back.end(), 0x99) == 100);

    // A process that is killed takes its mappings with it and nothing else.
    other.kill();
    event->record(*queue, 79);
    event->wait();
    REQUIRE(test::read_back(*context, *queue, memory->data() + 5000, 1).front() == 0x99);
}

TEST_CASE("the event of a killed recorder never reads as done") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    shared_words words;
    test::child recorder("recorder");
    const json answer = recorder.ask({{"words", test::to_json(words.handle)}, {"tag", 5}}, {words.handle.fd});
    const auto event =
        context->import_event(context->kind(), test::bytes_from<64>(answer.at("event")), words.word());
    REQUIRE(event != nullptr);
    REQUIRE_FALSE(event->done(5));
    recorder.kill();
    const u64 until = now_ns() + 700 * ns_per_ms;
    u32 seen_done = 0;
    while (now_ns() < until) {
        seen_done += event->done(5) ? 1 : 0;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    REQUIRE(seen_done == 0);
    // The survivor's own device works on.
    const auto queue = context->make_queue();
    const auto own = context->make_event(words.word());
    own->record(*queue, 6);
    own->wait();
    REQUIRE(own->done());
}
