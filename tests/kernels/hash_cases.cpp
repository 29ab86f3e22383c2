// The hash of a plane on the device of this test, against a slow reference of its definition.
#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cpu/entries.hpp"
#include "tests/kernels/backend.hpp"
#include "tests/kernels/block_hash_reference.hpp"

using namespace carousel;
using namespace carousel::kernels;
using namespace carousel::kernels::testing;
using carousel::test::reference_hash;

namespace {

/// Bytes without any pattern.
std::vector<std::byte> noise(u64 count) {
    std::vector<std::byte> out(count);
    u64 state = 1;
    for (std::byte& b : out)
        b = static_cast<std::byte>((state = state * 6364136223846793005ULL + 1442695040888963407ULL) >> 56U);
    return out;
}

struct rows {
    u64 row_bytes, count, pitch;
};

/// By the device, of bytes that begin `shift` bytes behind an aligned address.
u64 hash_on(backend& on, const std::vector<std::byte>& bytes, rows shape, u64 shift = 0) {
    const auto plane = on.context->allocate(bytes.size() + shift + 1), out = on.context->allocate_host(8);
    const auto host = on.context->allocate_host(bytes.size() + 1);
    std::copy(bytes.begin(), bytes.end(), host->host_data());
    const u64 wanted = hash_scratch_bytes(on.queue->kind());
    const auto scratch = on.context->allocate(wanted + 1);
    if (!bytes.empty()) on.queue->copy(plane->data() + shift, host->data(), bytes.size());
    hash_plane(*on.queue, {plane->data() + shift, shape.row_bytes, shape.count, shape.pitch, scratch->data(),
                           wanted, reinterpret_cast<u64*>(out->data())});
    on.queue->drain();
    u64 value = 0;
    std::memcpy(&value, out->host_data(), 8);
    return value;
}
u64 hash_on(backend& on, const std::vector<std::byte>& bytes) {
    return hash_on(on, bytes, {bytes.size(), 1, 0});
}

}  // namespace

TEST_CASE("A plane's hash is that of its definition, for every length around a block and a word") {
    CAROUSEL_NEEDS_DEVICE();
    for (const u64 length :
         {0U, 1U, 7U, 8U, 9U, 127U, 256U, 4095U, 4096U, 4097U, 8191U, 8192U, 40'000U, 1'000'003U}) {
        CAPTURE(length);
        const auto bytes = noise(length);
        CHECK(hash_on(on, bytes) == reference_hash(bytes));
        CHECK(hash_on(on, bytes, {length, 1, 0}, 3) == reference_hash(bytes));  // where no word is aligned
    }
}

TEST_CASE("A plane's hash has known answers, which a build that changes them must give another name") {
    CAROUSEL_NEEDS_DEVICE();
    CHECK(plane_hash_name == "carousel.blocks4k.v1");
    CHECK(hash_on(on, {}) == 0x48218226ff3cd4bf);
    CHECK(hash_on(on, {std::byte{0}}) == 0xfc03467f723b0f7f);
    CHECK(hash_on(on, noise(4096)) == 0x38147fa5d56ae763);
    CHECK(hash_on(on, noise(10'000)) == 0x5d38b37caa7790e3);
}

TEST_CASE("A plane's pitch and padding do not change its hash") {
    CAROUSEL_NEEDS_DEVICE();
    for (const rows shape : {rows{64, 300, 64},
                             {64, 300, 256},
                             {60, 300, 64},
                             {61, 300, 67},
                             {5'000, 7, 8'192},
                             {4, 2'000, 8},
                             {1, 5'000, 3}}) {
        for (const u64 shift : {0U, 1U}) {
            CAPTURE(shape.row_bytes, shape.pitch, shift);
            const auto dense = noise(shape.row_bytes * shape.count);
            std::vector<std::byte> wide(shape.pitch * shape.count, std::byte{0xAB});
            for (u64 r = 0; r < shape.count; ++r)
                std::copy_n(dense.begin() + static_cast<i64>(r * shape.row_bytes), shape.row_bytes,
                            wide.begin() + static_cast<i64>(r * shape.pitch));
            CHECK(hash_on(on, wide, shape, shift) == reference_hash(dense));
        }
    }
}

TEST_CASE("Changed bytes, swapped words, rows or blocks and a changed length change a plane's hash") {
    CAROUSEL_NEEDS_DEVICE();
    const auto bytes = noise(3 * 4096 + 100);
    const u64 before = hash_on(on, bytes);
    const auto swapped = [&](u64 a, u64 b, u64 count) {
        auto other = bytes;
        std::swap_ranges(other.begin() + static_cast<i64>(a), other.begin() + static_cast<i64>(a + count),
                         other.begin() + static_cast<i64>(b));
        return hash_on(on, other);
    };
    CHECK(swapped(0, 4096, 4096) != before);
    CHECK(swapped(0, 8192, 4096) != before);
    CHECK(swapped(4096, 4096 + 256, 256) != before);  // two rows of one block: the same columns
    CHECK(swapped(4096, 4096 + 8, 8) != before);
    CHECK(swapped(4096, 4096 + 128, 8) != before);  // a column and its neighbour
    for (const u64 length : {u64{0}, u64{100}, bytes.size() - 1})
        CHECK(hash_on(on, {bytes.begin(), bytes.begin() + static_cast<i64>(length)}) != before);
    auto longer = bytes;
    longer.push_back(std::byte{0});
    CHECK(hash_on(on, longer) != before);
    const std::vector<std::byte> zeros(4096);
    CHECK(hash_on(on, zeros) != hash_on(on, std::vector<std::byte>(8192)));
    for (u64 at = 0; at < bytes.size(); at += CAROUSEL_TEST_CUDA ? 997 : sanitized ? 7 : 1) {
        auto other = bytes;
        other[at] ^= std::byte{1};
        if (hash_on(on, other) == before) FAIL("byte " << at << " doesn't count");
    }
}

TEST_CASE("A plane's hash is refused for overlapping rows, no plane or no memory for it") {
    CAROUSEL_NEEDS_DEVICE();
    const auto memory = on.context->allocate(8192), scratch = on.context->allocate(1U << 20U);
    u64* const out = reinterpret_cast<u64*>(memory->data());
    CHECK_THROWS_AS(
        hash_plane(*on.queue, {memory->data(), 64, 2, 63, scratch->data(), scratch->bytes(), out}),
        config_error);
    CHECK_THROWS_AS(
        hash_plane(*on.queue, {memory->data(), 64, 1, 0, scratch->data(), scratch->bytes(), nullptr}),
        config_error);
    CHECK_THROWS_AS(hash_plane(*on.queue, {nullptr, 64, 1, 0, scratch->data(), scratch->bytes(), out}),
                    config_error);
}
