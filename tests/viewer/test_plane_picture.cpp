// Any plane as a picture: which plane of a ring, and what its values come to.
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/support/catch.hpp"
#include "viewer/watch/plane_picture.hpp"

namespace {

using namespace carousel;
using namespace carousel::viewer;
using ring::element;

template <typename T>
std::vector<u8> shown(const plane_picture& p, const std::vector<T>& values, value_range* range = nullptr) {
    std::vector<u8> out(std::size_t{p.width} * p.height * 4);
    REQUIRE(values.size() * sizeof(T) == p.plane.bytes());
    const value_range r = to_rgba(p, reinterpret_cast<const std::byte*>(values.data()),
                                  reinterpret_cast<std::byte*>(out.data()));
    if (range != nullptr) *range = r;
    return out;
}

plane_picture picture(element type, std::vector<u64> shape) {
    const auto p = picture_of({"any", {{"p", type, std::move(shape)}}, {}});
    REQUIRE(p);
    return *p;
}

std::vector<u8> pixel(const std::vector<u8>& all, std::size_t k) {
    return {all.begin() + 4 * k, all.begin() + 4 * k + 4};
}

}  // namespace

TEST_CASE("the colour plane is shown where there is one, else the first with rows and columns") {
    const ring::plane color{"color", element::u8_, {4, 6, 4}}, depth{"depth", element::f32_, {4, 6}},
        list{"list", element::u32_, {24}}, points{"points", element::f32_, {100, 3}},
        rows{"rows", element::f32_, {1, 24}};
    CHECK(picture_of({"a", {depth, color}, {}})->plane.name == "color");
    CHECK(picture_of({"a", {list, depth}, {}})->plane.name == "depth");
    CHECK_FALSE(picture_of({"a", {list, rows}, {}}));
    CHECK(picture_of({"a", {points}, {}})->width == 3);
    ring::plane strided = depth;
    strided.strides = {64, 4};
    CHECK_FALSE(picture_of({"a", {strided}, {}}));
    CHECK_FALSE(picture_of({"a", {{"f", element::f32_, {4, 6, 3}}}, {}}));
}

TEST_CASE("eight bit planes are shown as they are") {
    const std::vector<u8> colors = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    CHECK(shown(picture(element::u8_, {2, 2, 4}), colors) == colors);
    const auto rgb =
        shown(picture(element::u8_, {2, 2, 3}), std::vector<u8>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    CHECK(pixel(rgb, 3) == std::vector<u8>{10, 11, 12, 255});
    const auto grey = shown(picture(element::u8_, {2, 2}), std::vector<u8>{0, 7, 99, 255});
    CHECK(pixel(grey, 2) == std::vector<u8>{99, 99, 99, 255});
}

TEST_CASE("sixteen bit is grey from the frame's smallest to its largest value") {
    value_range r;
    const auto grey = shown(picture(element::u16_, {2, 2}), std::vector<u16>{1000, 1500, 2000, 1000}, &r);
    CHECK(r.low == 1000);
    CHECK(r.high == 2000);
    CHECK(pixel(grey, 0) == std::vector<u8>{0, 0, 0, 255});
    CHECK(pixel(grey, 1) == std::vector<u8>{128, 128, 128, 255});
    CHECK(pixel(grey, 2) == std::vector<u8>{255, 255, 255, 255});
}

TEST_CASE("signed whole numbers and truths are grey between their smallest and largest") {
    value_range r;
    shown(picture(element::i8_, {2, 2}), std::vector<i8>{-100, 0, 5, 27}, &r);
    CHECK((r.low == -100 && r.high == 27));
    shown(picture(element::i16_, {2, 2}), std::vector<i16>{-1000, 0, 5, 27}, &r);
    CHECK((r.low == -1000 && r.high == 27));
    shown(picture(element::i64_, {2, 2}), std::vector<i64>{-1, 0, 5, 1'000'000'000'000}, &r);
    CHECK((r.low == -1 && r.high == 1e12));
    const auto truth = shown(picture(element::bool_, {2, 2}), std::vector<u8>{1, 0, 0, 1}, &r);
    CHECK((r.low == 0 && r.high == 1));
    CHECK(pixel(truth, 0) == std::vector<u8>{255, 255, 255, 255});
}

TEST_CASE("what of a picture is not in use is black and counts for no range") {
    const plane_picture p = picture(element::u16_, {2, 3});
    const std::vector<u16> values{10, 20, 9999, 30, 40, 9999};
    std::vector<std::byte> rgba(24);
    const value_range r = to_rgba(p, reinterpret_cast<const std::byte*>(values.data()), rgba.data(), {2, 1});
    CHECK((r.low == 10 && r.high == 20));
    CHECK(rgba[4] == std::byte{255});
    for (const std::size_t k : {2, 3, 4, 5})
        CHECK((rgba[4 * k] == std::byte{0} && rgba[4 * k + 3] == std::byte{255}));
    const std::vector<u8> white(24, 255);
    to_rgba(picture(element::u8_, {2, 3, 4}), reinterpret_cast<const std::byte*>(white.data()), rgba.data(),
            {3, 1});
    CHECK((rgba[8] == std::byte{255} && rgba[12] == std::byte{0}));
}

TEST_CASE("floats are coloured from blue to red, what is no number is black and counts for no range") {
    value_range r;
    const auto c =
        shown(picture(element::f32_, {2, 3}), std::vector<f32>{-1, NAN, 1, INFINITY, -INFINITY, 0}, &r);
    CHECK(r.low == -1);
    CHECK(r.high == 1);
    CHECK(pixel(c, 0)[2] > 100);
    CHECK(pixel(c, 0)[0] == 0);
    CHECK(pixel(c, 2)[0] > 100);
    CHECK(pixel(c, 2)[2] == 0);
    CHECK(pixel(c, 5)[1] == 255);
    for (const std::size_t k : {1, 3, 4}) CHECK(pixel(c, k) == std::vector<u8>{0, 0, 0, 255});
    // half: 0, 1, 2, smallest
    shown(picture(element::f16_, {2, 2}), std::vector<u16>{0x0000, 0x3C00, 0x4000, 0x0001}, &r);
    CHECK(r.low == 0);
    CHECK(r.high == 2);
    // bfloat16: -2, 3; the 8-bit floats: -2, 448 and NaN; -2, infinity
    shown(picture(element::bf16_, {2, 2}), std::vector<u16>{0xC000, 0x4040, 0, 0}, &r);
    CHECK((r.low == -2 && r.high == 3));
    shown(picture(element::f8_e4m3_, {2, 2}), std::vector<u8>{0xC0, 0x7E, 0x7F, 0x01}, &r);
    CHECK((r.low == -2 && r.high == 448));
    shown(picture(element::f8_e5m2_, {2, 2}), std::vector<u8>{0xC0, 0x7C, 0x01, 0x3C}, &r);
    CHECK((r.low == -2 && r.high == 1));
    // all the same, and none at all
    shown(picture(element::f64_, {2, 2}), std::vector<f64>{3, 3, 3, 3}, &r);
    CHECK(r.low == r.high);
    shown(picture(element::f64_, {2, 2}), std::vector<f64>(4, NAN), &r);
    CHECK(r.high == 0);
}
