// The frame of one slot, copied without a lease by a process that is not a stage: whole, or reported.
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "core/clock.hpp"
#include "device/cpu/memfd.hpp"
#include "ring/recovery.hpp"
#include "session/slot_copy.hpp"
#include "tests/support/catch.hpp"
#include "tests/viewer/rig.hpp"

using namespace carousel;
using session::slot_content;
using session::slot_copy_result;

namespace {

constexpr u64 slot_bytes = 64 * 1024, at = 256, words = (slot_bytes - at) / sizeof(u64);

/// source -> middle -> sink in this process. Every word of a frame of the first ring is its number.
struct numbered_ring {
    numbered_ring() {
        r.sit_all();
        r.work = [this](u32 seat, const ring::job& j) {
            if (seat != 0) return;
            std::byte* slot = filled->data() + j.output[0].index * slot_bytes;
            auto* to = reinterpret_cast<volatile u64*>(slot + at);
            for (u64 k = 0; k < words; ++k) to[k] = j.ring_sequence;
            const u32 epoch = block().frames[0].header[j.output[0].index].epoch;
            const device::status_word ready{j.ring_sequence, epoch,
                                            static_cast<u32>(device::status_state::ready)};
            std::memcpy(slot, &ready, sizeof ready);
        };
    }
    [[nodiscard]] shm::control_block& block() noexcept { return r.block(); }
    [[nodiscard]] run::mapped_ring mapped() {
        run::mapped_ring m;
        m.memory = memory;
        m.stage = "source";
        m.slot_bytes = slot_bytes;
        m.slots = block().link[0].slots;
        return m;
    }
    /// The slot with that content, or shm::none.
    [[nodiscard]] u32 slot_with(slot_content content) {
        for (u32 k = 0; k < block().link[0].slots; ++k)
            if (session::stamp_slot(block(), 0, k).content == content) return k;
        return shm::none;
    }

    test::rig r{test::chain_of(3, slot_bytes)};
    device::memory_handle memory = device::create_memfd("slots", slot_bytes* block().link[0].slots);
    shm::unique_fd fd{memory.fd};
    std::unique_ptr<device::context> cpu = device::open({}, 1);
    std::unique_ptr<device::mapping> filled = cpu->map(memory, device::access::write);
};

struct slot_reader {
    explicit slot_reader(numbered_ring& of)
        : copier(of.block(), of.mapped(), *of.cpu), queue(of.cpu->make_queue()) {}
    slot_copy_result copy(u32 slot, const session::slot_stamp& before) {
        return copier.copy(*queue, slot, before, reinterpret_cast<std::byte*>(seen.data()), at, sizeof seen);
    }
    /// True if every word is that number.
    [[nodiscard]] bool holds(u64 number) const {
        for (const u64 word : seen)
            if (word != number) return false;
        return true;
    }
    session::slot_copier copier;
    std::unique_ptr<device::queue> queue;
    std::array<u64, words> seen{};
};

}  // namespace

TEST_CASE("a slot's frame is copied whole, as often as requested, and no word changes") {
    numbered_ring of;
    REQUIRE(of.r.pass(0));
    REQUIRE(of.r.pass(0));
    slot_reader reader(of);
    const auto before = std::make_unique<std::array<std::byte, sizeof(shm::control_block)>>();
    std::memcpy(before->data(), static_cast<const void*>(&of.block()), before->size());
    int frames = 0;
    for (u32 k = 0; k < of.block().link[0].slots; ++k) {
        const session::slot_stamp s = reader.copier.stamp(k);
        if (s.content != slot_content::frame) continue;
        ++frames;
        for (int again = 0; again < 20; ++again) {  // more often than a ring has places for observers
            CHECK(reader.copy(k, s) == slot_copy_result::whole);
            CHECK(reader.holds(s.facts.ring_sequence));
        }
    }
    CHECK(frames == 2);
    CHECK(std::memcmp(before->data(), static_cast<const void*>(&of.block()), before->size()) == 0);
}

TEST_CASE("a slot without a complete frame is reported with its state, and nothing is copied") {
    numbered_ring of;
    slot_reader reader(of);
    const auto result_of = [&](slot_content content) {
        const u32 slot = of.slot_with(content);
        REQUIRE(slot != shm::none);
        reader.seen.fill(7);
        const slot_copy_result result = reader.copy(slot, reader.copier.stamp(slot));
        CHECK(reader.holds(7));
        return result;
    };
    CHECK(result_of(slot_content::free) == slot_copy_result::no_frame);
    REQUIRE(of.r.begin(0));
    CHECK(result_of(slot_content::filling) == slot_copy_result::no_frame);
    of.r.die(0);
    CHECK(result_of(slot_content::quarantined) == slot_copy_result::no_frame);
    CHECK(reader.copier.stamp(of.block().link[0].slots).content == slot_content::damaged);
    CHECK(session::stamp_slot(of.block(), shm::max_links, 0).content == slot_content::damaged);
}

TEST_CASE("a slot that is reused before the end of the copy is reported as reused, not as a frame") {
    numbered_ring of;
    REQUIRE(of.r.pass(0));
    const u32 slot = of.slot_with(slot_content::frame);
    slot_reader reader(of);
    const session::slot_stamp first = reader.copier.stamp(slot);
    const auto reuse = [&] {  // until another frame is in the slot
        for (int turn = 0; turn < 200; ++turn) {
            of.r.turn();
            const session::slot_stamp now = session::stamp_slot(of.block(), 0, slot);
            if (now.content == slot_content::frame && now.word != first.word) return;
        }
        FAIL("the slot was not reused");
    };
    // The device reuses the slot after the stamp was read, and before the copy.
    reader.queue->submit([&](device::cpu::pool&) { reuse(); });
    CHECK(reader.copy(slot, first) == slot_copy_result::reused);
    const session::slot_stamp second = reader.copier.stamp(slot);
    CHECK(second.facts.ring_sequence > first.facts.ring_sequence);
    CHECK(reader.copy(slot, second) == slot_copy_result::whole);
    CHECK(reader.holds(second.facts.ring_sequence));
}

TEST_CASE("a write that bypasses the slot's word is found by the status word") {
    numbered_ring of;
    REQUIRE(of.r.pass(0));
    const u32 slot = of.slot_with(slot_content::frame);
    slot_reader reader(of);
    of.filled->data()[slot * slot_bytes] ^= std::byte{1};
    CHECK(reader.copy(slot, reader.copier.stamp(slot)) == slot_copy_result::torn);
}

TEST_CASE("at full speed of the ring every copy that is returned is one whole frame") {
    numbered_ring of;
    std::atomic<bool> stop{false};
    std::thread producer([&] {
        while (!stop) of.r.turn();
    });
    slot_reader reader(of);
    u64 whole = 0, reused = 0, mixed = 0, torn = 0;
    const u64 until = now_ns() + 20 * ns_per_s;
    for (u32 k = 0; (whole < 200 || reused < 5) && now_ns() < until; ++k) {
        const u32 slot = k % of.block().link[0].slots;
        const session::slot_stamp s = reader.copier.stamp(slot);
        if (s.content != slot_content::frame) continue;
        const slot_copy_result result = reader.copy(slot, s);
        whole += result == slot_copy_result::whole ? 1 : 0;
        reused += result == slot_copy_result::reused ? 1 : 0;
        torn += result == slot_copy_result::torn ? 1 : 0;
        mixed += result == slot_copy_result::whole && !reader.holds(s.facts.ring_sequence) ? 1 : 0;
    }
    stop = true;
    producer.join();
    CHECK(whole >= 200);
    CHECK(reused >= 5);  // the control: slots were reused during copies
    CHECK(mixed == 0);
    CHECK(torn == 0);
}
