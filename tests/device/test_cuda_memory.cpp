// GPU memory from carousel-alloc, memory shared with the CPU, and memory of a second GPU.

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "device/cpu/memfd.hpp"
#include "tests/device/child.hpp"
#include "tests/device/rig.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"
#if defined(CAROUSEL_WITH_CUDA)
#include "device/cuda/devices.hpp"
#endif

using namespace carousel;
using nlohmann::json;

namespace {

/// A block as the supervisor would take it over from carousel-alloc.
device::memory_handle take(test::child& alloc, std::vector<shm::unique_fd>& fds) {
    const json j = alloc.receive(&fds);
    CAPTURE(j.dump());
    REQUIRE_FALSE(j.contains("error"));
    device::memory_handle handle;
    handle.kind = j.at("kind") == "vmm" ? device::memory_kind::vmm : device::memory_kind::ipc;
    handle.bytes = j.at("bytes");
    handle.uuid = j.at("uuid");
    if (handle.kind == device::memory_kind::vmm) {
        REQUIRE(fds.size() == 1);
        handle.fd = fds[0].get();
    } else {
        const std::string hex = j.at("ipc");
        REQUIRE(hex.size() == 128);
        for (std::size_t i = 0; i < 64; ++i)
            handle.ipc[i] = static_cast<std::byte>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
    }
    return handle;
}

bool all_are(const std::vector<u8>& bytes, u8 value) {
    return std::all_of(bytes.begin(), bytes.end(), [&](u8 b) { return b == value; });
}

}  // namespace

TEST_CASE("vmm memory from carousel-alloc is zero, and its fds keep it after its creator has ended") {
    CAROUSEL_NEEDS_BACKEND();
    test::child alloc(
        "", test::program_next_to_test("carousel-alloc"),
        {"--fd", "10", "--requests",
         R"([{"id":"a","bytes":100000,"kind":"vmm"},{"id":"b","bytes":5000000,"kind":"vmm","ordinal":0}])"});
    std::vector<shm::unique_fd> fds_a, fds_b;
    const device::memory_handle a = take(alloc, fds_a);
    const device::memory_handle b = take(alloc, fds_b);
    REQUIRE(a.bytes % (2 << 20) == 0);
    REQUIRE(b.bytes >= 5'000'000);
    REQUIRE(alloc.alive());
    alloc.send("taken");
    REQUIRE(alloc.exit_code() == 0);
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const auto memory = context->map(b, device::access::write);
    REQUIRE(all_are(test::read_back(*context, *queue, memory->data(), b.bytes), 0));
    queue->fill(memory->data(), 0x11, b.bytes);
    REQUIRE(all_are(test::read_back(*context, *context->make_queue(),
                                    context->map(a, device::access::write)->data(), a.bytes),
                    0));
}

TEST_CASE("ipc memory exists while its owner sleeps, and new importers are refused after its end") {
    CAROUSEL_NEEDS_BACKEND();
    test::child alloc("", test::program_next_to_test("carousel-alloc"),
                      {"--fd", "10", "--requests", R"([{"id":1,"bytes":3000000,"kind":"ipc"}])"});
    std::vector<shm::unique_fd> none;
    const device::memory_handle handle = take(alloc, none);
    alloc.send("taken");
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    {
        const auto memory = context->map(handle, device::access::write);
        const auto again = context->map(handle, device::access::write);
        REQUIRE(all_are(test::read_back(*context, *queue, memory->data(), handle.bytes), 0));
        queue->fill(memory->data(), 0x22, handle.bytes);
        REQUIRE(all_are(test::read_back(*context, *queue, again->data(), handle.bytes), 0x22));
    }
    REQUIRE(alloc.alive());
    alloc.hang_up();
    REQUIRE(alloc.exit_code() == 0);
    REQUIRE_THROWS_WITH(context->map(handle, device::access::write), test::contains("restart the pipeline"));
}

TEST_CASE("a memfd is one memory for the CPU and the GPU") {
    CAROUSEL_NEEDS_BACKEND();
    const auto gpu = test::open_backend();
    const auto cpu = device::open({device::device_kind::cpu, "", 0}, 2);
    const auto gpu_queue = gpu->make_queue();
    const auto cpu_queue = cpu->make_queue();
    const device::memory_handle handle = device::create_memfd("mixed", 1 << 20);
    const auto on_gpu = gpu->map(handle, device::access::write);
    const auto on_cpu = cpu->map(handle, device::access::write);
    ::close(handle.fd);
    REQUIRE(on_gpu->host_data() != nullptr);
    auto* word = reinterpret_cast<device::status_word*>(on_gpu->data());
    const device::status_word ready{9, 1, static_cast<u32>(device::status_state::ready)};

    // GPU to CPU: complete means that the CPU reads it.
    const auto event = gpu->make_event(nullptr);
    gpu_queue->fill(on_gpu->data(), 0x44, on_gpu->bytes());
    gpu_queue->write_status(word, ready);
    event->record(*gpu_queue, 1);
    event->wait();
    REQUIRE(std::memcmp(on_cpu->data(), &ready, sizeof ready) == 0);
    REQUIRE(all_are({reinterpret_cast<const u8*>(on_cpu->data()) + 16,
                     reinterpret_cast<const u8*>(on_cpu->data()) + on_cpu->bytes()},
                    0x44));

    // CPU to GPU, with the CPU's event polled by the GPU's side, as a stage downstream of a CPU stage does.
    std::atomic<u64> tag{0};
    const auto cpu_event = cpu->make_event(&tag);
    const auto imported = gpu->import_event(device::device_kind::cpu, {}, &tag);
    REQUIRE(imported != nullptr);
    REQUIRE_FALSE(imported->done(31));
    cpu_queue->fill(on_cpu->data() + 4096, 0x55, 1000);
    cpu_queue->write_status(reinterpret_cast<device::status_word*>(on_cpu->data()), {10, 1, ready.state});
    cpu_event->record(*cpu_queue, 31);
    const u64 until = now_ns() + 5 * ns_per_s;
    while (!imported->done(31) && now_ns() < until) {
    }
    REQUIRE(imported->done(31));
    const auto torn = gpu->allocate_host(sizeof(u32));
    gpu_queue->check_status(word, {10, 1, ready.state}, reinterpret_cast<u32*>(torn->data()));
    REQUIRE(all_are(test::read_back(*gpu, *gpu_queue, on_gpu->data() + 4096, 1000), 0x55));
    REQUIRE(*reinterpret_cast<const u32*>(torn->host_data()) == 0);
    REQUIRE(cpu->import_event(device::device_kind::cuda, event->export_handle(), &tag) == nullptr);
}

TEST_CASE("memory of another GPU is mapped with peer access or refused with the reason") {
    CAROUSEL_NEEDS_BACKEND();
#if defined(CAROUSEL_WITH_CUDA)
    const auto gpus = device::cuda::list_gpus();
    if (gpus.size() < 2) CAROUSEL_SKIP("this machine has one GPU");
    const test::shareable shared(1 << 20);  // of the first GPU
    const auto first = test::open_backend();
    const auto first_queue = first->make_queue();
    const auto there = first->map(shared.handle(), device::access::write);
    const auto second = device::open({device::device_kind::cuda, gpus[1].uuid, 1});
    std::string why;
    if (!device::cuda::has_peer_access(gpus[1], gpus[0], why)) {
        REQUIRE_THROWS_WITH(second->map(shared.handle(), device::access::write),
                            test::contains("no peer access"));
        return;
    }
    const auto here = second->map(shared.handle(), device::access::write);
    const auto second_queue = second->make_queue();
    second_queue->fill(here->data(), 0x66, 1 << 20);
    second_queue->drain();
    REQUIRE(all_are(test::read_back(*first, *first_queue, there->data(), 1 << 20), 0x66));
#endif
}
