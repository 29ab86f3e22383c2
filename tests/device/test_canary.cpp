// Canaries after slots: planted and checked on a queue, with the same result on each backend.

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "device/canary.hpp"
#include "tests/device/rig.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using device::canary_bytes;
using device::canary_damaged;
using device::canary_key;
using device::canary_step;
using device::canary_whole;
using device::status_step;

namespace {

struct canaries {
    std::unique_ptr<device::context> context = test::open_backend();
    std::unique_ptr<device::queue> queue = context->make_queue();
    std::unique_ptr<device::mapping> memory = context->allocate(5 * canary_bytes);
    std::unique_ptr<device::mapping> words = context->allocate_host(6 * sizeof(device::canary_check));
    std::unique_ptr<device::mapping> byte = context->allocate_host(1);

    [[nodiscard]] std::byte* of(u32 k) const { return memory->data() + k * canary_bytes; }
    [[nodiscard]] device::canary_check* word(u32 k) const {
        return reinterpret_cast<device::canary_check*>(words->data()) + k;
    }
    [[nodiscard]] u32 result(u32 k) const { return word(k)->result(); }
    [[nodiscard]] canary_step one(u32 k, u64 key) const {
        return {reinterpret_cast<u64*>(of(k)), key, word(k)};
    }
    void plant(u32 k, u64 key) const {
        const canary_step c = one(k, key);
        device::plant_canaries(*queue, std::span(&c, 1));
    }
    [[nodiscard]] u32 check(u32 k, u64 key) const {
        word(k)->clear();
        const canary_step c = one(k, key);
        device::guarded_status(*queue, {}, std::span(&c, 1));
        queue->drain();
        return result(k);
    }
    void change(u32 k, u64 offset) const {
        const u8 was = test::read_back(*context, *queue, of(k) + offset, 1)[0];
        *byte->host_data() = static_cast<std::byte>(was ^ 0x10U);
        queue->copy(of(k) + offset, byte->data(), 1);
        queue->drain();
    }
};

}  // namespace

TEST_CASE("a canary is intact until any byte of it changes, and the first changed byte is reported") {
    CAROUSEL_NEEDS_BACKEND();
    const canaries c;
    CHECK(c.check(0, 17) == canary_damaged);  // zeroes: never planted
    c.plant(0, 17);
    CHECK(c.result(0) != canary_whole);  // planting says nothing
    CHECK(c.check(0, 17) == canary_whole);
    for (const u64 offset : {u64{0}, u64{1}, u64{7}, u64{8}, u64{15}, u64{16}, u64{4095}, u64{4096},
                             u64{16'383}, u64{40'003}, canary_bytes - 9, canary_bytes - 1}) {
        CAPTURE(offset);
        c.plant(0, 17);
        c.change(0, offset);
        CHECK(c.check(0, 17) == canary_damaged + offset);
        if (offset > 8) {
            c.change(0, offset - 3);
            CHECK(c.check(0, 17) == canary_damaged + offset - 3);
        }
    }
    const std::vector<u8> next = test::read_back(*c.context, *c.queue, c.of(1), canary_bytes);
    CHECK(std::count(next.begin(), next.end(), 0) == static_cast<std::ptrdiff_t>(canary_bytes));
}

TEST_CASE("the canary of another slot, ring or incarnation is invalid from its first word on") {
    CAROUSEL_NEEDS_BACKEND();
    const canaries c;
    const u64 key = canary_key(3, 5, 2);
    c.plant(0, key);
    CHECK(c.check(0, key) == canary_whole);
    for (const u64 other : {canary_key(3, 6, 2), canary_key(4, 5, 2), canary_key(3, 5, 3)}) {
        const u32 found = c.check(0, other);
        CHECK(found >= canary_damaged);
        CHECK(found < canary_damaged + 8);
    }
}

TEST_CASE("a step handles status words and four canaries, each separately") {
    CAROUSEL_NEEDS_BACKEND();
    const canaries c;
    const auto status = c.context->allocate(2 * sizeof(device::status_word));
    auto* const at = reinterpret_cast<device::status_word*>(status->data());
    const device::status_word ready{7, 1, static_cast<u32>(device::status_state::ready)};
    c.queue->write_status(at, ready);
    std::array<canary_step, device::most_canaries> all;
    for (u32 k = 0; k < 4; ++k) all[k] = c.one(k, k + 9);
    c.word(0)->part[0] = 99;
    device::plant_canaries(*c.queue, std::span(all).first(4));
    c.queue->drain();
    CHECK(c.result(0) == 99);  // planting says nothing
    c.word(0)->clear();
    c.change(2, 60'000);
    status_step s;
    s.torn = c.word(5)->part;
    s.expect(at, ready);
    s.expect(at + 1, ready);  // zeroes
    s.store_at(at + 1);
    s.value = {8, 1, 1};
    device::guarded_status(*c.queue, s, std::span(all).first(4));
    c.queue->drain();
    CHECK(c.result(0) == canary_whole);
    CHECK(c.result(1) == canary_whole);
    CHECK(c.result(2) == canary_damaged + 60'000);
    CHECK(c.result(3) == canary_whole);
    CHECK(c.word(5)->part[0] == 1);
    const std::vector<u8> written = test::read_back(*c.context, *c.queue, status->data() + 16, 16);
    CHECK(std::memcmp(written.data(), &s.value, 16) == 0);
}
