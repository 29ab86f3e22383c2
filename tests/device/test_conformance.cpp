// The behaviour that every backend must have within one process.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "tests/device/rig.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using device::status_word;

TEST_CASE("work runs in the order of its submission") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const auto memory = context->allocate_host(500 * sizeof(u32));
    auto* diary = reinterpret_cast<u32*>(memory->data());
    for (u32 i = 1; i <= 300; ++i) test::append(*queue, diary, i * 7);
    queue->drain();
    REQUIRE(diary[0] == 300);
    u32 wrong = 0;
    for (u32 i = 1; i <= 300; ++i) wrong += diary[i] != i * 7 ? 1 : 0;
    REQUIRE(wrong == 0);
}

TEST_CASE("copies and fills move every byte and no other") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    for (const u64 count : {u64{1}, u64{17}, u64{4096}, u64{3 * 1024 * 1024 + 5}}) {
        const auto on_device = context->allocate(count + 64);
        const auto source = context->allocate_host(count);
        for (u64 i = 0; i < count; ++i) source->host_data()[i] = static_cast<std::byte>(i * 31 + i / 251);
        queue->fill(on_device->data(), 0xAB, count + 64);
        queue->copy(on_device->data() + 32, source->data(), count);
        const std::vector<u8> all = test::read_back(*context, *queue, on_device->data(), count + 64);
        REQUIRE(std::memcmp(all.data() + 32, source->host_data(), count) == 0);
        REQUIRE(std::count(all.begin(), all.begin() + 32, 0xAB) == 32);
        REQUIRE(std::count(all.end() - 32, all.end(), 0xAB) == 32);
    }
}

TEST_CASE("fresh memory is zero") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const test::shareable shared(100'000);
    const auto mapped = context->map(shared.handle(), device::access::write);
    const auto own = context->allocate(100'000);
    const auto host = context->allocate_host(100'000);
    REQUIRE(mapped->bytes() == shared.handle().bytes);
    REQUIRE(host->data() == host->host_data());
    for (const std::byte* from : {mapped->data(), own->data(), host->data()}) {
        const std::vector<u8> all = test::read_back(*context, *queue, from, 100'000);
        REQUIRE(std::count(all.begin(), all.end(), 0) == 100'000);
    }
}

TEST_CASE("an event is not done before its work and is done after it") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const auto event = context->make_event(nullptr);
    // an event that was never recorded reads as complete: a fact to build on, not a wish
    REQUIRE(event->done());
    test::gate gate(*context);
    gate.block(*queue);
    event->record(*queue, 1);
    REQUIRE_FALSE(event->done());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    REQUIRE_FALSE(event->done());
    gate.open();
    event->wait();
    REQUIRE(event->done());
}

TEST_CASE("a new record makes a done event undone again") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const auto event = context->make_event(nullptr);
    event->record(*queue, 1);
    event->wait();
    test::gate gate(*context);
    gate.block(*queue);
    event->record(*queue, 2);
    REQUIRE_FALSE(event->done());
    gate.open();
    event->wait();
    REQUIRE(event->done());
}

TEST_CASE("waiting for an event sleeps") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const auto event = context->make_event(nullptr);
    test::gate gate(*context);
    gate.block(*queue);
    event->record(*queue, 1);
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
        gate.open();
    });
    const u64 begin = now_ns();
    const u64 cpu_begin = process_cpu_ns();
    event->wait();
    const u64 cpu = process_cpu_ns() - cpu_begin;
    const u64 wall = now_ns() - begin;
    opener.join();
    REQUIRE(wall > 300 * ns_per_ms);
    REQUIRE(cpu < wall / 10);
}

TEST_CASE("two mappings of one memory are the same bytes at two addresses") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const test::shareable shared(1 << 20);
    const auto a = context->map(shared.handle(), device::access::write);
    const auto b = context->map(shared.handle(), device::access::write);
    REQUIRE(a->data() != b->data());
    queue->fill(a->data() + 1000, 0x5A, 300);
    queue->fill(b->data() + 1100, 0xC3, 100);
    const std::vector<u8> seen = test::read_back(*context, *queue, a->data() + 1000, 300);
    REQUIRE(std::count(seen.begin(), seen.end(), 0xC3) == 100);
    REQUIRE(std::count(seen.begin(), seen.end(), 0x5A) == 200);
}

TEST_CASE("memory outlives every mapping while its fd is open") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const test::shareable shared(1 << 16);
    {
        const auto first = context->map(shared.handle(), device::access::write);
        queue->fill(first->data(), 0x77, 1 << 16);
        queue->drain();
    }
    const auto again = context->map(shared.handle(), device::access::write);
    const std::vector<u8> seen = test::read_back(*context, *queue, again->data(), 1 << 16);
    REQUIRE(std::count(seen.begin(), seen.end(), 0x77) == 1 << 16);
}

TEST_CASE("a status check finds each single flipped bit and accepts the right word") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const auto memory = context->allocate(4096);
    const auto counter = context->allocate_host(sizeof(u32));
    auto* torn = reinterpret_cast<u32*>(counter->data());
    auto* at = reinterpret_cast<status_word*>(memory->data() + 256);
    const status_word right{0x0123456789ABCDEF, 42, static_cast<u32>(device::status_state::ready)};
    queue->write_status(at, right);
    for (int i = 0; i < 10; ++i) queue->check_status(at, right, torn);
    queue->drain();
    REQUIRE(*torn == 0);
    for (int bit = 0; bit < 128; ++bit) {
        auto bytes = std::bit_cast<std::array<u8, 16>>(right);
        bytes[static_cast<std::size_t>(bit / 8)] ^= static_cast<u8>(1 << (bit % 8));
        queue->write_status(at, std::bit_cast<status_word>(bytes));
        queue->check_status(at, right, torn);
        queue->drain();
        REQUIRE(*torn == static_cast<u32>(bit + 1));
    }
    const std::vector<u8> around = test::read_back(*context, *queue, memory->data(), 512);
    // only the 16 bytes were written
    REQUIRE(std::count(around.begin(), around.begin() + 256, 0) == 256);
    REQUIRE(std::count(around.begin() + 272, around.end(), 0) == 240);
}

TEST_CASE("one piece of work stores a status word in up to four places, and nowhere where one is null") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const auto memory = context->allocate(4096);
    auto* at = reinterpret_cast<status_word*>(memory->data());
    const status_word value{7, 42, static_cast<u32>(device::status_state::ready)};
    device::status_step step;
    for (status_word* place : {at + 1, static_cast<status_word*>(nullptr), at + 3, at + 5, at + 7})
        step.store_at(place);
    CHECK(step.writes == device::status_step::most);  // the fifth is one too many
    step.value = value;
    queue->status(step);
    queue->write_status(nullptr, value);
    queue->drain();
    const std::vector<u8> seen = test::read_back(*context, *queue, memory->data(), 8 * sizeof(status_word));
    for (std::size_t k = 0; k < 8; ++k) {
        const status_word wanted = k == 1 || k == 3 || k == 5 ? value : status_word{};
        CAPTURE(k);
        CHECK(std::memcmp(seen.data() + k * sizeof(wanted), &wanted, sizeof(wanted)) == 0);
    }
}

TEST_CASE("one piece of work compares up to five words: of four inputs and a state") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const auto memory = context->allocate(4096);
    const auto counter = context->allocate_host(sizeof(u32));
    auto* torn = reinterpret_cast<u32*>(counter->data());
    *torn = 0;
    const auto* at = reinterpret_cast<const status_word*>(memory->data());
    queue->fill(memory->data(), 0, 4096);
    for (u32 differing = 0; differing < 5; ++differing) {
        device::status_step step;
        step.torn = torn;
        for (u32 k = 0; k < 5; ++k) step.expect(at + k, {k == differing ? 1U : 0U, 0, 0});
        queue->status(step);
        queue->drain();
        CHECK(*torn == differing + 1);
    }
}

TEST_CASE("a thousand records on one event, each waited for by another thread") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const auto memory = context->allocate_host(2000 * sizeof(u32));
    auto* diary = reinterpret_cast<u32*>(memory->data());
    std::atomic<u64> word{0};
    const auto event = context->make_event(&word);
    std::atomic<u32> recorded{0}, waited{0};
    std::thread waiter([&] {
        for (u32 i = 1; i <= 1000; ++i) {
            while (recorded.load() < i) std::this_thread::yield();
            event->wait();
            waited.store(i);
        }
    });
    for (u32 i = 1; i <= 1000; ++i) {
        test::append(*queue, diary, i);
        event->record(*queue, i);
        recorded.store(i);
        while (waited.load() < i) std::this_thread::yield();
    }
    waiter.join();
    REQUIRE(diary[0] == 1000);
    REQUIRE(diary[1000] == 1000);
    if (!test::on_cuda) REQUIRE(word.load() == 1000);
}

TEST_CASE("a queue that is destroyed lets its work finish") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const auto memory = context->allocate_host(500 * sizeof(u32));
    auto* diary = reinterpret_cast<u32*>(memory->data());
    const auto event = context->make_event(nullptr);
    {
        const auto queue = context->make_queue();
        for (u32 i = 1; i <= 200; ++i) test::append(*queue, diary, i);
        event->record(*queue, 1);
    }
    event->wait();
    REQUIRE(diary[0] == 200);
}

TEST_CASE("mapping other memory is refused with a reason") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const test::shareable shared(1 << 16);
    device::memory_handle handle = shared.handle();
    handle.bytes *= 64;
    REQUIRE_THROWS_AS(context->map(handle, device::access::write), device_error);  // larger than the memory
    handle = shared.handle();
    handle.fd = -1;
    REQUIRE_THROWS_AS(context->map(handle, device::access::write), device_error);
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    handle.fd = ends[0];
    REQUIRE_THROWS_AS(context->map(handle, device::access::write), device_error);  // an fd of something else
    ::close(ends[0]);
    ::close(ends[1]);
    const auto good =
        context->map(shared.handle(), device::access::write);  // and the backend is none the worse
    REQUIRE(good->data() != nullptr);
}

TEST_CASE("a context describes itself") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    REQUIRE(context->kind() == (test::on_cuda ? device::device_kind::cuda : device::device_kind::cpu));
    REQUIRE_THAT(context->description(), test::contains(test::on_cuda ? "(cuda:0)" : "CPU, 3 threads"));
}
