// The table by which a SIGSEGV is reported: the ring, slot and offset of the attempted write. Mappings are
// static: what is guarded stays mapped until the process ends.
#include "stages/runner/exit_note.hpp"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "device/cpu/memfd.hpp"
#include "shm/fd_socket.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::stages;
using ring::wild_write;
using ring::wild_write_target;

TEST_CASE("an address in guarded memory is described as ring, slot and offset, or as asset") {
    const device::memory_handle memory = device::create_memfd("guarded", 3 * 8192);
    const shm::unique_fd owned(memory.fd);
    static const device::memfd_mapping ring_memory(memory, device::access::read);
    static const device::memfd_mapping asset_memory(memory, device::access::read);
    const device::memfd_mapping own(memory, device::access::write);
    guard(ring_memory, wild_write_target::input, 7, 8192, 3);
    guard(asset_memory, wild_write_target::asset, 2, 0, 0);
    guard(own, wild_write_target::output, 9, 8192, 3);  // writable: no look-up of it
    CHECK(find_wild_write(ring_memory.data()) == wild_write{wild_write_target::input, 7, 0, 0});
    CHECK(find_wild_write(ring_memory.data() + 8191) == wild_write{wild_write_target::input, 7, 0, 8191});
    CHECK(find_wild_write(ring_memory.data() + 2 * 8192 + 5) ==
          wild_write{wild_write_target::input, 7, 2, 5});
    CHECK(find_wild_write(asset_memory.data() + 3 * 8192 - 1) ==
          wild_write{wild_write_target::asset, 2, 0, 3 * 8192 - 1});
    CHECK(find_wild_write(own.data()).what == wild_write_target::nothing);
    CHECK(find_wild_write(ring_memory.data() - 1).index != 7);
    CHECK(find_wild_write(nullptr).what == wild_write_target::nothing);
}

TEST_CASE("an address in a frame's header is described as ring, slot and offset in the header") {
    const auto c = std::make_unique<shm::control_block>();
    guard_headers(*c);
    CHECK(find_wild_write(&c->frames[0]) == wild_write{wild_write_target::header, 0, 0, 0});
    CHECK(find_wild_write(&c->frames[5].header[3].meta.time_s) ==
          wild_write{wild_write_target::header, 5, 3, offsetof(shm::frame_header, meta.time_s)});
    CHECK(find_wild_write(&c->frames[shm::max_links - 1].header[63].metadata[1023]).index ==
          shm::max_links - 1);
    CHECK(find_wild_write(&c->frames[shm::max_links]).what == wild_write_target::nothing);
    CHECK(find_wild_write(&c->event_handle[0]).what == wild_write_target::nothing);
}

TEST_CASE("an address in the gap after a slot is described as the preceding slot") {
    device::memory_handle memory = device::create_memfd("gaps", u64{3} * 8192);
    const shm::unique_fd owned(memory.fd);
    memory.pieces = 3;
    constexpr u64 bytes = 5120;  // lies 3072 into its piece
    static const device::memfd_mapping own(memory, device::access::write);
    static const device::memfd_mapping input(memory, device::access::read);
    guard(own, wild_write_target::output, 4, bytes, 3);
    guard(input, wild_write_target::input, 5, bytes, 3);
    CHECK(find_wild_write(own.slot(1, bytes) + bytes) == wild_write{wild_write_target::output, 4, 1, bytes});
    CHECK(find_wild_write(own.slot(0, bytes) + bytes + 60'000) ==
          wild_write{wild_write_target::output, 4, 0, bytes + 60'000});
    CHECK(find_wild_write(own.slot(2, bytes) - 5000) ==
          wild_write{wild_write_target::output, 4, 1, own.stride(bytes) - 5000});  // an underrun
    CHECK(find_wild_write(input.slot(2, bytes) + 7) == wild_write{wild_write_target::input, 5, 2, 7});
    CHECK(find_wild_write(input.slot(2, bytes) + bytes + 7) ==
          wild_write{wild_write_target::after_input, 5, 2, bytes + 7});
}

TEST_CASE("threads that guard memory concurrently have a row each") {
    const device::memory_handle memory = device::create_memfd("at once", 8192);
    const shm::unique_fd owned(memory.fd);
    static std::vector<std::unique_ptr<device::memfd_mapping>> mapped;
    for (u32 k = 0; k < 8; ++k)
        mapped.push_back(std::make_unique<device::memfd_mapping>(memory, device::access::read));
    std::atomic<u32> begun{0};
    std::vector<std::thread> threads;
    for (u32 k = 0; k < mapped.size(); ++k)
        threads.emplace_back([&, k] {
            begun.fetch_add(1, std::memory_order_relaxed);
            while (begun.load(std::memory_order_relaxed) < mapped.size()) std::this_thread::yield();
            guard(*mapped[k], wild_write_target::asset, k, 0, 0);
        });
    for (std::thread& t : threads) t.join();
    for (u32 k = 0; k < mapped.size(); ++k)
        CHECK(find_wild_write(mapped[k]->data() + 5) == wild_write{wild_write_target::asset, k, 0, 5});
}
