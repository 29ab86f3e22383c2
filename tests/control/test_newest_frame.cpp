// The newest frame of a ring, taken by a process that is no stage: whole, or not at all.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.hpp"
#include "device/cpu/memfd.hpp"
#include "frame/metadata.hpp"
#include "ring/header_check.hpp"
#include "ring/recovery.hpp"
#include "session/newest_frame.hpp"
#include "tests/support/catch.hpp"
#include "tests/viewer/rig.hpp"

using namespace carousel;
using test::contains;

namespace {

constexpr u64 slot_bytes = 4096, at = 256;

/// source -> middle -> sink in this process. A frame of the first ring holds its number a thousandfold.
struct small_ring {
    small_ring() {
        r.sit_all();
        r.work = [this](u32 seat, const ring::job& j) {
            if (seat != 0) return;
            std::byte* slot = filled->data() + j.output[0].index * slot_bytes;
            const u64 value = j.ring_sequence * 1000;
            std::memcpy(slot + at, &value, sizeof value);
            const u32 epoch = block().frames[0].header[j.output[0].index].epoch;
            const device::status_word ready{j.ring_sequence, epoch,
                                            static_cast<u32>(device::status_state::ready)};
            std::memcpy(slot, &ready, sizeof ready);
        };
    }
    [[nodiscard]] shm::control_block& block() noexcept { return r.block(); }
    [[nodiscard]] run::mapped_ring lend(shm::unique_fd connection) {
        run::mapped_ring l;
        l.socket_path = "/nobody/listens/here";
        l.connection.reset(std::move(connection));
        l.memory = memory;
        l.format = {"test.number", {{"value", ring::element::u64_, {1}}}, {}};
        (void)l.format.lay_out();
        l.stage = "source";
        l.entry = shm::max_incarnations;
        l.slot_bytes = slot_bytes;
        l.slots = block().link[0].slots;
        return l;
    }
    /// The group word of the only reader.
    [[nodiscard]] ring::lease_word lease(u32 slot) {
        return ring::lease_word::of(ring::load(block().link[0].group[slot][shm::max_blocking]));
    }
    [[nodiscard]] u32 leased_slot() {
        for (u32 k = 0; k < block().link[0].slots; ++k)
            if (lease(k).state == ring::lease_state::leased) return k;
        return shm::none;
    }

    test::rig r{test::chain_of(3, slot_bytes)};
    device::memory_handle memory = device::create_memfd("newest", slot_bytes* block().link[0].slots);
    shm::unique_fd fd{memory.fd};
    std::unique_ptr<device::context> cpu = device::open({}, 1);
    std::unique_ptr<device::mapping> filled = cpu->map(memory, device::access::write);
};

/// Whoever looks at it.
struct frame_reader {
    explicit frame_reader(small_ring& of)
        : ring(&of),
          newest(of.block(), of.lend(std::move(ends.first)), *of.cpu),
          queue(of.cpu->make_queue()) {}
    /// `meddle` is called while the lease is held, before the copy.
    bool take(const std::function<void(u32 slot)>& meddle = nullptr, u64 only = ring::any_ring_sequence) {
        if (meddle)
            queue->submit([this, meddle](device::cpu::pool&) {
                u32 slot = shm::none;
                for (u32 k = 0; k < 2000 && slot == shm::none; ++k, ::usleep(1000))
                    slot = ring->leased_slot();
                if (slot != shm::none) meddle(slot);
            });
        return newest.take(*queue, reinterpret_cast<std::byte*>(&value), at, sizeof value, what, only);
    }

    small_ring* ring;
    std::pair<shm::unique_fd, shm::unique_fd> ends = shm::socket_pair();
    session::newest_frame newest;
    std::unique_ptr<device::queue> queue;
    u64 value = ~u64{0};
    session::newest_frame::about what;
};

/// The mappings of the ring's pages in this process, each one separately: "r--s", "rw-s".
std::vector<std::string> rights_of_ring() {
    std::ifstream maps("/proc/self/maps");
    std::vector<std::string> out;
    for (std::string line; std::getline(maps, line);)
        if (line.find("/memfd:newest") != std::string::npos)
            out.push_back(line.substr(line.find(' ') + 1, 4));
    std::sort(out.begin(), out.end());
    return out;
}

}  // namespace

TEST_CASE("an observer maps a ring read-only") {
    small_ring of;
    CHECK(rights_of_ring() == std::vector<std::string>{"rw-s"});  // its maker's own
    const frame_reader reader(of);
    CHECK(rights_of_ring() == std::vector<std::string>{"r--s", "rw-s"});
}

TEST_CASE("the newest frame is taken, whole, once, and its lease is given back") {
    small_ring of;
    frame_reader reader(of);
    CHECK_FALSE(reader.take());
    for (u32 k = 0; k < 3; ++k) REQUIRE(of.r.pass(0));
    REQUIRE(reader.take());
    CHECK(reader.what.ring_sequence == 2);
    CHECK(reader.value == 2000);
    CHECK(of.leased_slot() == shm::none);
    CHECK_FALSE(reader.take());
    REQUIRE(of.r.pass(0));
    REQUIRE(reader.take());
    CHECK(reader.value == 3000);
}

TEST_CASE("a frame is read by its number while it is in the ring, and known to be gone afterwards") {
    small_ring of;
    frame_reader reader(of);
    CHECK(reader.newest.may_arrive(1));  // not there yet
    CHECK_FALSE(reader.take(nullptr, 1));
    for (u32 k = 0; k < 3; ++k) REQUIRE(of.r.pass(0));
    REQUIRE(reader.take(nullptr, 1));
    CHECK((reader.what.ring_sequence == 1 && reader.value == 1000));
    CHECK_FALSE(reader.newest.may_arrive(1));  // taken
    CHECK_FALSE(reader.take(nullptr, 0));      // older than that
    for (u32 k = 0; k < 3; ++k) REQUIRE(of.r.pass(1));
    CHECK(reader.newest.may_arrive(2));  // its readers have finished with it, but it is kept
    CHECK(reader.newest.may_arrive(3));
    REQUIRE(of.r.pass(0));
    REQUIRE(of.r.pass(1));
    CHECK_FALSE(reader.newest.may_arrive(2));  // a newer one has passed
    CHECK(reader.newest.may_arrive(3));
    REQUIRE(reader.take(nullptr, 3));
    CHECK(reader.value == 3000);
}

TEST_CASE("the newest frame has its metadata, its capture time and its used extents") {
    small_ring of;
    frame_reader reader(of);
    REQUIRE(of.r.pass(0));
    for (u32 k = 0; k < of.block().link[0].slots; ++k) {
        shm::frame_header& h = of.block().frames[0].header[k];
        h.metadata_bytes = 0;
        REQUIRE(ring::set_metadata(h.metadata, h.metadata_bytes, "gain", i64{2}) ==
                ring::metadata_change::done);
        h.meta.capture_ns = 77;
        h.meta.clock = shm::capture_clock::live;
        h.used.planes = 1;
        h.used.of[0][0] = 0;
        h.sampled_inputs = 1;
        h.sampled_sequence[0] = 5;
        ring::seal(h, of.block().parameters.bytes);
    }
    REQUIRE(reader.take());
    CHECK(reader.what.sampled_frames == std::vector<u64>{5});
    CHECK(ring::line_of(reader.what.metadata) == "gain 2");
    CHECK(reader.what.capture_ns == 77);
    CHECK(reader.what.clock == shm::capture_clock::live);
    CHECK(reader.what.used.planes == 1);
}

TEST_CASE("a frame whose lease is revoked during its copy is discarded and counted") {
    small_ring of;
    frame_reader reader(of);
    REQUIRE(of.r.pass(0));
    bool revoked = false;
    CHECK_FALSE(reader.take([&](u32) { revoked = ring::revoke_stale_leases(of.block(), 0, ~u64{0} / 2); }));
    CHECK(revoked);
    CHECK(reader.newest.losses().revoked == 1);
    CHECK(reader.newest.losses().torn == 0);
    REQUIRE(of.r.pass(0));
    CHECK(reader.take());
    CHECK(reader.value == 1000);
}

TEST_CASE("a frame whose status word belongs to another frame is discarded and counted") {
    small_ring of;
    frame_reader reader(of);
    REQUIRE(of.r.pass(0));
    CHECK_FALSE(reader.take([&](u32 slot) { of.filled->data()[slot * slot_bytes] = std::byte{9}; }));
    CHECK(reader.newest.losses().torn == 1);
    CHECK(reader.newest.losses().revoked == 0);
}

TEST_CASE("a frame whose header changes during its copy is discarded and counted") {
    small_ring of;
    frame_reader reader(of);
    REQUIRE(of.r.pass(0));
    CHECK_FALSE(reader.take([&](u32 slot) { of.block().frames[0].header[slot].meta.capture_ns ^= 1; }));
    CHECK(reader.newest.losses().torn == 1);
    CHECK(reader.newest.losses().revoked == 0);
    CHECK(of.leased_slot() == shm::none);
    REQUIRE(of.r.pass(0));
    CHECK(reader.take());
    CHECK(reader.value == 1000);
}

TEST_CASE("a tombstone frame is not a picture: it is counted and its memory is not read") {
    small_ring of;
    frame_reader reader(of);
    REQUIRE(of.r.pass(0));
    for (u32 k = 0; k < of.block().link[0].slots; ++k) {
        shm::frame_header& h = of.block().frames[0].header[k];
        h.meta.tombstone_stage = 0;
        ring::seal(h, of.block().parameters.bytes);
    }
    reader.value = 77;
    CHECK_FALSE(reader.take());
    CHECK(reader.newest.losses().tombstones == 1);
    CHECK(reader.value == 77);
}

TEST_CASE("without a supervisor frames are taken as before, from the same place") {
    small_ring of;
    frame_reader reader(of);
    REQUIRE(of.r.pass(0));
    reader.ends.second.reset();  // the supervisor is dead, and nobody listens
    CHECK(reader.take());
    REQUIRE(of.r.pass(0));
    CHECK(reader.take());
    CHECK(reader.value == 1000);
}

TEST_CASE("a reader frees its place when it leaves, and a ninth reader gets no place") {
    small_ring of;
    {
        std::vector<std::unique_ptr<frame_reader>> all;
        for (u32 k = 0; k < shm::max_latest; ++k) all.push_back(std::make_unique<frame_reader>(of));
        CHECK_THROWS_WITH(frame_reader(of),
                          contains("all 8 places for viewers, ports and displays at the ring of "
                                   "source are taken: close one"));
    }
    CHECK_NOTHROW(frame_reader(of));
}
