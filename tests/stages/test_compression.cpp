// Compression of recordings and links: decompressed bytes, and bytes with wrong sizes.
#include <algorithm>
#include <random>
#include <vector>

#include "stages/compression/compression.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::stages;

namespace {

std::vector<std::byte> picture(std::size_t bytes) {
    std::vector<std::byte> out(bytes);
    for (std::size_t k = 0; k < bytes; ++k) out[k] = static_cast<std::byte>(k / 64 % 251);
    return out;
}

}  // namespace

TEST_CASE("bytes come back as they were, and only into room of their size") {
    const std::string how = GENERATE(from_range(compressions()));
    const std::vector<std::byte> in = picture(100'000);
    std::vector<std::byte> packed, out(in.size());
    compress(how, in, packed);
    if (how != "none") CHECK(packed.size() < in.size() / 4);
    decompress(how, packed, out);
    CHECK(out == in);
    if (how == "none") {  // the name that a recording has for it
        out.assign(in.size(), std::byte{0});
        decompress("", packed, out);
        CHECK(out == in);
    }
    for (const std::size_t wrong : {in.size() - 1, in.size() + 1, std::size_t{0}}) {
        std::vector<std::byte> other(wrong);
        CHECK_THROWS_AS(decompress(how, packed, other), compression_error);
    }
}

TEST_CASE("damaged bytes are refused or come to something of the size, and write nowhere else") {
    const std::string how = GENERATE(from_range(compressions()));
    if (how == "none") return;
    const std::vector<std::byte> in = picture(5000);
    std::vector<std::byte> packed;
    compress(how, in, packed);
    std::mt19937_64 dice(7);
    constexpr std::size_t guard = 64;
    for (int round = 0; round < 2000; ++round) {
        std::vector<std::byte> damaged = packed;
        if (round % 4 == 0) damaged.resize(dice() % packed.size());
        for (u64 k = 0; k <= dice() % 4 && !damaged.empty(); ++k)
            damaged[dice() % damaged.size()] = static_cast<std::byte>(dice());
        std::vector<std::byte> out(in.size() + guard, std::byte{0x5A});
        try {
            decompress(how, damaged, std::span(out).first(in.size()));
        } catch (const compression_error&) {
        }
        REQUIRE(std::all_of(out.end() - guard, out.end(), [](std::byte b) { return b == std::byte{0x5A}; }));
    }
}
