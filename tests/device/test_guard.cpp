// Memory of others: mapped for reading, a write to it is its writer's own fault.

#include <algorithm>

#include "core/errors.hpp"
#include "device/cpu/memfd.hpp"
#include "tests/device/child.hpp"
#include "tests/device/rig.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using nlohmann::json;

namespace {

bool all_are(const std::vector<u8>& seen, u8 value) {
    return std::count(seen.begin(), seen.end(), value) == static_cast<std::ptrdiff_t>(seen.size());
}

/// The child maps `handle` for reading, reads its first byte, and writes to it on its queue.
void check_wild_write(device::context& context, const device::memory_handle& handle) {
    const auto queue = context.make_queue();
    const auto own = context.map(handle, device::access::write);
    queue->fill(own->data(), 0x3C, own->bytes());
    queue->drain();
    test::child wild_writer("wild-write");
    const json before = wild_writer.ask({{"memory", test::to_json(handle)}}, {handle.fd});
    CAPTURE(before.dump());
    REQUIRE(before.at("read") == 0x3C);
    REQUIRE(before.at("read_only") == true);
    if (test::on_cuda) {
        const json after = wild_writer.receive();
        CHECK(after.at("status") == 700);
        CHECK(after.at("code") == exit_code::gpu_fault);
    } else {
        CHECK(wild_writer.exit_code() != 0);
    }
    CHECK(all_are(test::read_back(context, *queue, own->data(), own->bytes()), 0x3C));
    queue->fill(own->data(), 0x55, own->bytes());  // its owner writes on
    CHECK(all_are(test::read_back(context, *queue, own->data(), own->bytes()), 0x55));
}

/// The child writes beyond the middle slot of three: its neighbours and its own contents stay intact.
void check_overrun(device::context& context, const device::memory_handle& handle, const std::vector<int>& fds,
                   u64 beyond) {
    const u64 bytes = handle.piece_bytes() - 3072;
    const auto queue = context.make_queue();
    const auto own = context.map(handle, device::access::write);
    REQUIRE(own->has_gaps());
    for (u32 k = 0; k < 3; ++k) queue->fill(own->slot(k, bytes), 0x3C, bytes);
    queue->drain();
    test::child guilty("overrun");
    const json before =
        guilty.ask({{"memory", test::to_json(handle)}, {"slot_bytes", bytes}, {"beyond", beyond}}, fds);
    CAPTURE(before.dump(), beyond);
    REQUIRE(before.at("gaps") == true);
    if (test::on_cuda) {
        const json after = guilty.receive();
        CHECK(after.at("status") == 700);
        CHECK(after.at("code") == exit_code::gpu_fault);
    } else {
        CHECK(guilty.exit_code() != 0);
    }
    for (const u32 k : {0U, 2U})
        CHECK(all_are(test::read_back(context, *queue, own->slot(k, bytes), bytes), 0x3C));
    CHECK(all_are(test::read_back(context, *queue, own->slot(1, bytes), bytes), 0x66));
}

}  // namespace

TEST_CASE("memory mapped read-only reads as written, and a mapping reports its mode") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const test::shareable shared(1 << 20);
    const auto own = context->map(shared.handle(), device::access::write);
    const auto theirs = context->map(shared.handle(), device::access::read);
    CHECK_FALSE(own->read_only());
    CHECK(theirs->read_only());
    queue->fill(own->data(), 0x77, 1 << 20);
    CHECK(all_are(test::read_back(*context, *queue, theirs->data(), 1 << 20), 0x77));
    const auto torn = context->allocate_host(sizeof(u32));
    const auto copy = context->allocate(4096);
    queue->check_status(reinterpret_cast<const device::status_word*>(theirs->data()),
                        {0x7777777777777777, 0x77777777, 0x77777777}, reinterpret_cast<u32*>(torn->data()));
    queue->copy(copy->data(), theirs->data() + 4096, 4096);
    CHECK(all_are(test::read_back(*context, *queue, copy->data(), 4096), 0x77));
    CHECK(*reinterpret_cast<const u32*>(torn->host_data()) == 0);
}

TEST_CASE("a write to memory that is mapped for reading ends only its writer and changes no byte") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const test::shareable shared(1 << 16);
    check_wild_write(*context, shared.handle());
}

TEST_CASE("the same of host memory, which a GPU page-locks for reading") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const device::memory_handle host = device::create_memfd("guarded", 1 << 16);
    const shm::unique_fd owned(host.fd);
    if (test::on_cuda && !context->map(host, device::access::read)->read_only())
        CAROUSEL_SKIP("this GPU can't page-lock host memory read-only");
    check_wild_write(*context, host);
}

TEST_CASE("a write beyond a slot of a ring in pieces ends only its writer, at any byte") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const test::shareable shared(u64{3} * (4 << 20), 3);
    for (const u64 beyond : {u64{0}, u64{60'000}})
        check_overrun(*context, shared.handle(), shared.fds(), beyond);
}

TEST_CASE("the same of pieces of host memory, which a GPU page-locks one by one") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    device::memory_handle host = device::create_memfd("pieces", u64{3} * 65536);
    host.pieces = 3;
    const shm::unique_fd owned(host.fd);
    if (!context->map(host, device::access::write)->has_gaps())
        CAROUSEL_SKIP("this GPU uses other addresses for host memory than the CPU");
    check_overrun(*context, host, {host.fd}, 0);
}
