#include "picture/png.hpp"

#include <spng.h>

#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"

using namespace carousel;

namespace {

std::vector<std::byte> some_picture(u32 width, u32 height, u32 seed) {
    std::vector<std::byte> rgba(std::size_t{width} * height * 4);
    for (std::size_t i = 0; i < rgba.size(); ++i) {
        seed = seed * 1664525 + 1013904223;
        rgba[i] = i % 4 == 3 ? std::byte{255} : static_cast<std::byte>(i % 97 < 60 ? i / 97 : seed >> 24);
    }
    return rgba;
}

/// spng reads the file's bytes to those pixels.
void check_same(const std::vector<std::byte>& rgba, u32 width, u32 height,
                const std::vector<std::byte>& png) {
    const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> c(spng_ctx_new(0), spng_ctx_free);
    REQUIRE(spng_set_crc_action(c.get(), SPNG_CRC_ERROR, SPNG_CRC_ERROR) == 0);
    REQUIRE(spng_set_png_buffer(c.get(), png.data(), png.size()) == 0);
    spng_ihdr header{};
    REQUIRE(spng_get_ihdr(c.get(), &header) == 0);
    CHECK(header.width == width);
    CHECK(header.height == height);
    std::vector<std::byte> back(rgba.size());
    REQUIRE(spng_decode_image(c.get(), back.data(), back.size(), SPNG_FMT_RGBA8, 0) == 0);
    CHECK(spng_decode_chunks(c.get()) == 0);  // to the end: the checksums, too
    CHECK(back == rgba);
}

}  // namespace

TEST_CASE("a picture is restored from its bytes bit for bit") {
    // Sizes of one stripe and of several, of rows longer than one; stripes of one row and more, up to all.
    for (const auto& [width, height] :
         {std::pair<u32, u32>{1, 1}, {7, 5}, {640, 3}, {1, 97}, {97, 1}, {1283, 719}, {70'001, 3}}) {
        for (const u32 stripe_rows : {0U, 1U, 2U, 3U, height}) {
            CAPTURE(width, height, stripe_rows);
            const auto rgba = some_picture(width, height, width);
            check_same(rgba, width, height, encode_png(rgba, width, height, one_by_one, stripe_rows));
        }
    }
}

TEST_CASE("pixels that can't be packed come back bit for bit") {
    std::vector<std::byte> noise(std::size_t{300} * 200 * 4);
    std::mt19937_64 random(7);
    for (std::byte& b : noise) b = static_cast<std::byte>(random());
    const auto png = encode_png(noise, 300, 200);
    CHECK(png.size() > noise.size());
    check_same(noise, 300, 200, png);
}

TEST_CASE("a picture's stripes packed by any thread in any order give the same file") {
    const auto rgba = some_picture(1280, 720, 5);
    const auto alone = encode_png(rgba, 1280, 720);
    u32 parts_seen = 0;
    const auto backwards = [&](u32 parts, const std::function<void(u32)>& body) {
        parts_seen = parts;
        std::vector<std::thread> threads;
        for (u32 k = parts; k-- > 0;) threads.emplace_back([&body, k] { body(k); });
        for (std::thread& t : threads) t.join();
    };
    CHECK(encode_png(rgba, 1280, 720, backwards) == alone);
    CHECK(parts_seen == 15);  // 3.7 MB in stripes of a quarter of the picture
    CHECK(alone.size() < rgba.size());
}
