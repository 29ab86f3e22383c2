// Tags and failures of the CPU backend.

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "core/errors.hpp"
#include "device/cpu/pool.hpp"
#include "tests/device/rig.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

using namespace carousel;

TEST_CASE("an imported event is done when its word has the requested tag") {
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    std::atomic<u64> word{0};
    const auto event = context->make_event(&word);
    const auto imported = context->import_event(device::device_kind::cpu, {}, &word);
    REQUIRE(imported != nullptr);
    REQUIRE_FALSE(imported->done(5));
    test::gate gate(*context);
    gate.block(*queue);
    event->record(*queue, 5);
    REQUIRE_FALSE(imported->done(5));
    gate.open();
    event->wait();
    REQUIRE(imported->done(5));
    REQUIRE_FALSE(imported->done(6));
    event->record(*queue, 6);
    event->wait();
    REQUIRE_FALSE(imported->done(5));
    REQUIRE(imported->done(6));
}

TEST_CASE("the CPU imports neither a GPU's event nor a word that isn't there") {
    const auto context = test::open_backend();
    std::atomic<u64> word{0};
    REQUIRE(context->import_event(device::device_kind::cuda, {}, &word) == nullptr);
    REQUIRE(context->import_event(device::device_kind::cpu, {}, nullptr) == nullptr);
}

TEST_CASE("an exception in a task surfaces at the event after it, which never completes") {
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    std::atomic<u64> word{0};
    const auto before = context->make_event(nullptr);
    const auto event = context->make_event(&word);
    std::atomic<bool> ran_after{false};
    test::gate gate(*context);
    gate.block(*queue);
    before->record(*queue, 1);
    queue->submit([](device::cpu::pool&) { throw std::runtime_error("no more teapots"); });
    queue->submit([&](device::cpu::pool&) { ran_after = true; });
    event->record(*queue, 9);
    gate.open();
    REQUIRE_THROWS_WITH(event->wait(), test::contains("no more teapots"));
    REQUIRE_THROWS_AS(event->done(), carousel::error);
    REQUIRE_NOTHROW(before->wait());
    REQUIRE(word.load() == 0);
    REQUIRE_FALSE(ran_after);
    try {
        event->wait();
        FAIL("the failure is sticky");
    } catch (const carousel::error& e) {
        REQUIRE(e.code() == exit_code::stage_exception);
    }
    REQUIRE_THROWS_AS(queue->drain(), carousel::error);
    REQUIRE_THROWS_AS(queue->submit([](device::cpu::pool&) {}), carousel::error);
    REQUIRE_THROWS_AS(event->record(*queue, 10), carousel::error);
}

TEST_CASE("a waiter that sleeps already is woken by a failure, with the error's own code") {
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const auto event = context->make_event(nullptr);
    test::gate gate(*context);
    gate.block(*queue);
    queue->submit([](device::cpu::pool& threads) {
        threads.parallel_for(100, 1, [](u64 begin, u64, unsigned) {
            if (begin == 63) throw output_error("disk full");
        });
    });
    event->record(*queue, 1);
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        gate.open();
    });
    int code = 0;
    try {
        event->wait();
    } catch (const carousel::error& e) {
        code = e.code();
        CHECK_THAT(e.what(), test::contains("disk full"));
    }
    opener.join();
    REQUIRE(code == exit_code::output);
}

TEST_CASE("a CPU stage refuses GPU memory and names what the link needs") {
    const auto context = test::open_backend();
    device::memory_handle handle;
    handle.kind = device::memory_kind::vmm;
    handle.bytes = 4096;
    handle.fd = 0;
    handle.uuid = "00112233445566778899aabbccddeeff";
    REQUIRE_THROWS_WITH(context->map(handle, device::access::write),
                        test::contains("vmm memory") && test::contains("memfd"));
}

TEST_CASE("a build or machine without CUDA reports that instead of opening it") {
    if (test::on_cuda) CAROUSEL_SKIP("only in the CPU's suite");
    try {
        const auto context = device::open({device::device_kind::cuda, "00000000000000000000000000000000", 0});
        FAIL("a GPU with that uuid can't exist");
    } catch (const device_error& e) {
        REQUIRE(e.code() == exit_code::no_device);
        REQUIRE_THAT(e.what(), test::contains("CUDA"));
    }
}
