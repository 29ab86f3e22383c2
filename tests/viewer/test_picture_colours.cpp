// The colours of a plane's values, for each element type, and the text next to them.
#include "viewer/watch/picture_colours.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/support/catch.hpp"
#include "tests/viewer/painted.hpp"
#include "viewer/watch/picture_choice.hpp"

using namespace carousel;
using namespace carousel::viewer;
using ring::element;
using test::paint;
using test::painted;

namespace {

plane_picture picture(element type, std::vector<u64> shape, const char* name = "p") {
    ring::frame_format f{"any", {{name, type, std::move(shape)}}, {}};
    (void)f.lay_out();
    auto p = picture_of(f);
    REQUIRE(p);
    return *p;
}

const picture_style all{range_choice::extremes};
picture_style from_to(f64 low, f64 high) { return {range_choice::fixed, low, high}; }
constexpr colour black{}, white{255, 255, 255};
colour grey(u8 v) { return {v, v, v}; }
colour first_of(colour_map m) { return table_of(m).front(); }
colour last_of(colour_map m) { return table_of(m).back(); }

/// Four values, the smallest and the largest among them, and their texts.
template <typename T>
void check_type(element type, const std::vector<T>& values, f64 low, f64 high, const char* text_of_first) {
    INFO(ring::name_of(type));
    const plane_picture p = picture(type, {2, 2});
    const painted seen = paint(p, values, all);
    CHECK(seen.scale.low == low);
    CHECK(seen.scale.high == high);
    CHECK(seen.at(0) == first_of(seen.scale.colours));
    CHECK(seen.at(3) == last_of(seen.scale.colours));
    CHECK(pixel_text(p, reinterpret_cast<const std::byte*>(values.data()), 0, 0) == text_of_first);
}

}  // namespace

TEST_CASE("a value of each element type has its colour and its exact text") {
    check_type<u8>(element::u8_, {7, 8, 9, 200}, 7, 200, "7");
    check_type<u16>(element::u16_, {300, 400, 500, 65535}, 300, 65535, "300");
    check_type<u32>(element::u32_, {70000, 80000, 90000, 4'000'000'000}, 70000, 4e9, "70000");
    check_type<u64>(element::u64_, {9'007'199'254'740'993, 1ULL << 60U, 1ULL << 61U, 1ULL << 62U},
                    9'007'199'254'740'992.0, 4.611686018427388e18, "9007199254740993");
    check_type<i8>(element::i8_, {-100, 0, 5, 27}, -100, 27, "-100");
    check_type<i16>(element::i16_, {-1000, 0, 5, 27}, -1000, 27, "-1000");
    check_type<i32>(element::i32_, {-100'000, 0, 5, 27}, -100'000, 27, "-100000");
    check_type<i64>(element::i64_, {-9'007'199'254'740'993, 0, 5, 27}, -9'007'199'254'740'992.0, 27,
                    "-9007199254740993");
    check_type<f32>(element::f32_, {0.1F, 1, 2, 3}, static_cast<f64>(0.1F), 3, "0.1");
    check_type<f64>(element::f64_, {0.1, 1, 2, 3}, 0.1, 3, "0.1");
    check_type<u16>(element::f16_, {0x3555, 0x3C00, 0x4000, 0x4200}, 0.333251953125, 3, "0.33325195");
    check_type<u16>(element::bf16_, {0xC000, 0x3F80, 0x4000, 0x4040}, -2, 3, "-2");
    check_type<u8>(element::f8_e4m3_, {0xC0, 0x01, 0x38, 0x7E}, -2, 448, "-2");
    check_type<u8>(element::f8_e5m2_, {0xC0, 0x01, 0x38, 0x3C}, -2, 1, "-2");
    check_type<u8>(element::bool_, {0, 1, 0, 1}, 0, 1, "false");
}

TEST_CASE("whole numbers are grey, floats in viridis, unless another map is chosen") {
    const std::vector<u16> whole{0, 10, 20, 100};
    CHECK(paint(picture(element::u16_, {2, 2}), whole, all).at(3) == white);
    picture_style style = all;
    style.colours = colour_map::viridis;
    CHECK(paint(picture(element::u16_, {2, 2}), whole, style).at(3) == last_of(colour_map::viridis));
    const std::vector<f32> floats{0, 10, 20, 100};
    CHECK(paint(picture(element::f32_, {2, 2}), floats, all).at(0) == first_of(colour_map::viridis));
    style.colours = colour_map::grey;
    CHECK(paint(picture(element::f32_, {2, 2}), floats, style).at(1) == grey(26));
}

TEST_CASE("eight bit is shown as it is, colours as well as grey and truths") {
    const std::vector<u8> rgba = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    CHECK(paint(picture(element::u8_, {2, 2, 4}), rgba).rgba == rgba);
    const std::vector<u8> rgb{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    CHECK(paint(picture(element::u8_, {2, 2, 3}), rgb).at(3) == colour{10, 11, 12});
    CHECK_FALSE(paint(picture(element::u8_, {2, 2, 3}), rgb).scale.of_values);
    const painted mono = paint(picture(element::u8_, {2, 2}), std::vector<u8>{0, 7, 99, 200});
    CHECK(mono.at(2) == grey(99));
    CHECK((mono.scale.low == 0 && mono.scale.high == 255));
    const painted truth = paint(picture(element::bool_, {2, 2}), std::vector<u8>{1, 1, 1, 0});
    CHECK((truth.at(0) == white && truth.at(3) == black));
    CHECK(paint(picture(element::i8_, {2, 2}), std::vector<i8>{-128, 0, 1, 127}).at(0) == black);
}

TEST_CASE("NaN has a colour of its own, is counted, and affects no range") {
    constexpr f32 nan = NAN, inf = INFINITY;
    const painted seen = paint(picture(element::f32_, {2, 3}), std::vector<f32>{-1, nan, 1, inf, -inf, 0});
    CHECK((seen.scale.low == -1 && seen.scale.high == 1));
    CHECK((seen.scale.nan == 1 && seen.scale.infinite == 2));
    for (const std::size_t k : {1, 3, 4}) CHECK(seen.at(k) == no_number_colour);
    CHECK(beyond_text(seen.scale) == "1 NaN, 2 infinite");
    for (const colour_map m : {colour_map::grey, colour_map::viridis})
        for (const colour c : table_of(m)) CHECK_FALSE(c == no_number_colour);
    // the NaN of an 8-bit float, the infinity of the other, and of the 16-bit ones
    CHECK(paint(picture(element::f8_e4m3_, {2, 2}), std::vector<u8>{0x7F, 0xFF, 1, 2}).scale.nan == 2);
    CHECK(paint(picture(element::f8_e5m2_, {2, 2}), std::vector<u8>{0x7C, 0xFC, 0x7D, 2}).scale.infinite ==
          2);
    CHECK(paint(picture(element::f16_, {2, 2}), std::vector<u16>{0x7C00, 0x7C01, 1, 2}).scale.infinite == 1);
    CHECK(paint(picture(element::bf16_, {2, 2}), std::vector<u16>{0x7F80, 0x7FC0, 1, 2}).scale.nan == 1);
    const painted none = paint(picture(element::f64_, {2, 2}), std::vector<f64>(4, NAN));
    CHECK((none.scale.nan == 4 && none.scale.low == 0 && none.scale.high == 0));
    CHECK(none.at(0) == no_number_colour);
}

TEST_CASE("a constant picture has the middle colour of the map, and its range is its value") {
    for (const picture_style& style : {picture_style{}, all}) {
        const painted seen = paint(picture(element::f32_, {4, 4}), std::vector<f32>(16, 3.5F), style);
        CHECK((seen.scale.low == 3.5 && seen.scale.high == 3.5));
        CHECK((seen.scale.below == 0 && seen.scale.above == 0));
        for (std::size_t k = 0; k < 16; ++k) CHECK(seen.at(k) == table_of(colour_map::viridis)[127]);
    }
    const painted zeros = paint(picture(element::u16_, {4, 4}), std::vector<u16>(16, 0));
    CHECK(zeros.at(5) == grey(127));
}

TEST_CASE("a range beyond the largest number has colours, too") {
    constexpr f64 most = std::numeric_limits<f64>::max();
    const painted seen = paint(picture(element::f64_, {2, 2}), std::vector<f64>{-most, 0, most, 0}, all);
    CHECK(seen.at(0) == first_of(colour_map::viridis));
    CHECK(seen.at(1) == table_of(colour_map::viridis)[128]);
    CHECK(seen.at(2) == last_of(colour_map::viridis));
}

TEST_CASE("the automatic range omits a few values at either end and reports how many") {
    std::vector<f32> values(100 * 100);
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<f32>(k % 1000);
    for (std::size_t k = 0; k < 20; ++k) values[k * 97] = k % 2 == 0 ? 1e6F : -1e6F;
    const painted seen = paint(picture(element::f32_, {100, 100}), values);
    CHECK((seen.scale.low >= 0 && seen.scale.low < 20));
    CHECK((seen.scale.high <= 999 && seen.scale.high > 980));
    CHECK((seen.scale.below >= 10 && seen.scale.above >= 10));
    CHECK(seen.at(0) == last_of(colour_map::viridis));
    CHECK(paint(picture(element::f32_, {100, 100}), values, all).scale.high == 1e6);
    // a few values on an even ground are not left out: there would be no range
    std::vector<u16> spots(100 * 100, 7);
    spots[5050] = 900;
    const painted ground = paint(picture(element::u16_, {100, 100}), spots);
    CHECK((ground.scale.low == 7 && ground.scale.high == 900));
    CHECK(ground.at(5050) == white);
}

TEST_CASE("the automatic range of a large picture is sampled and close to the full one") {
    std::mt19937 random(3);
    std::normal_distribution<f32> value(10, 2);
    std::vector<f32> values(1000 * 1500);
    for (f32& v : values) v = value(random);
    const painted seen = paint(picture(element::f32_, {1000, 1500}), values);
    CHECK(std::abs(seen.scale.low - (10 - 2.576 * 2)) < 0.3);
    CHECK(std::abs(seen.scale.high - (10 + 2.576 * 2)) < 0.3);
}

TEST_CASE("a fixed range is kept, and values outside it are clamped and counted") {
    const painted seen =
        paint(picture(element::i16_, {2, 2}), std::vector<i16>{-50, 0, 50, 500}, from_to(0, 100));
    CHECK((seen.at(0) == black && seen.at(1) == black && seen.at(2) == grey(128) && seen.at(3) == white));
    CHECK((seen.scale.below == 1 && seen.scale.above == 1));
    CHECK(beyond_text(seen.scale) == "1 below, 1 above");
    CHECK(beyond_text({}).empty());
    const painted mono =
        paint(picture(element::u8_, {2, 2}), std::vector<u8>{10, 15, 20, 30}, from_to(10, 20));
    CHECK((mono.at(0) == black && mono.at(1) == grey(128) && mono.at(3) == white));
}

TEST_CASE("two or three values a pixel are red, green and blue of one range, planar or not") {
    // 0, 5, 10 in each order, one row; the last pixel has a NaN
    const std::vector<f32> last{0, 5, 10, 10, 0, 5, 5, 10, 0, 0, 0, 0, 10, 10, 10,
                                0, 5, 10, 10, 0, 5, 5, 10, 0, 0, 0, 0, 10, 10, NAN};
    const painted seen = paint(picture(element::f32_, {2, 5, 3}), last, all);
    CHECK(seen.at(0) == colour{0, 128, 255});
    CHECK(seen.at(1) == colour{255, 0, 128});
    CHECK(seen.at(9) == no_number_colour);
    std::vector<f32> first(last.size());
    for (std::size_t k = 0; k < last.size(); ++k) first[k % 3 * 10 + k / 3] = last[k];
    const plane_picture planar = picture(element::f32_, {3, 2, 5});
    CHECK(paint(planar, first, all).rgba == seen.rgba);
    CHECK(pixel_text(planar, reinterpret_cast<const std::byte*>(first.data()), 1, 0) == "0 10 1 0 2 5");
    const std::vector<f32> flow{0, 10, 10, 0, 5, 5, 0, 0};
    CHECK(paint(picture(element::f32_, {2, 2, 2}), flow, all).at(0) == colour{0, 255, 0});
}

TEST_CASE("NV12 values are converted to the correct colours") {
    // Four squares of two by two: black, white, and the reddest red and bluest blue of BT.601, 16 to 235.
    const std::vector<u8> bytes{16, 16, 235, 235, 16,  16,  235, 235, 81, 81,  41,  41,
                                81, 81, 41,  41,  128, 128, 128, 128, 90, 240, 240, 110};
    const plane_picture p = picture(element::u8_, {6, 4}, "nv12");
    const painted seen = paint(p, bytes);
    const auto near = [](colour a, colour b) {
        return std::abs(a.r - b.r) <= 2 && std::abs(a.g - b.g) <= 2 && std::abs(a.b - b.b) <= 2;
    };
    CHECK(near(seen.at(0), black));
    CHECK(near(seen.at(3), white));
    CHECK(near(seen.at(9), {255, 0, 0}));
    CHECK(near(seen.at(15), {0, 0, 255}));
    CHECK_FALSE(seen.scale.of_values);
    CHECK(pixel_text(p, reinterpret_cast<const std::byte*>(bytes.data()), 1, 3) == "Y 81 U 90 V 240");
    plane_picture full = p;
    full.colours.full_range = true;
    CHECK(paint(full, bytes).at(0) == grey(16));
}

TEST_CASE("the unused part of a picture is black and not counted") {
    const plane_picture p = picture(element::f32_, {2, 3});
    const std::vector<f32> values{10, 20, 9999, NAN, 40, 9999};
    const painted seen = paint(p, values, all, {2, 1});
    CHECK((seen.scale.low == 10 && seen.scale.high == 20 && seen.scale.nan == 0 && seen.scale.above == 0));
    for (const std::size_t k : {2, 3, 4, 5}) CHECK(seen.at(k) == black);
    CHECK(paint(picture(element::u8_, {2, 3, 4}), std::vector<u8>(24, 255), {}, {3, 1}).at(3) == black);
    CHECK(paint(p, values, {}, {0, 0}).at(0) == black);
}

TEST_CASE("viridis is the published one, and grows brighter from step to step") {
    const auto near = [](colour a, colour b) {
        return std::abs(a.r - b.r) <= 4 && std::abs(a.g - b.g) <= 4 && std::abs(a.b - b.b) <= 4;
    };
    // of the published table of 256: its first, 64th, 128th, 192nd and last
    CHECK(near(colour_at(colour_map::viridis, 0), {68, 1, 84}));
    CHECK(near(colour_at(colour_map::viridis, 64 / 255.0), {58, 82, 139}));
    CHECK(near(colour_at(colour_map::viridis, 128 / 255.0), {32, 144, 140}));
    CHECK(near(colour_at(colour_map::viridis, 192 / 255.0), {94, 201, 97}));
    CHECK(near(colour_at(colour_map::viridis, 1), {253, 231, 36}));
    f64 before = -1;
    for (std::size_t k = 0; k < 256; k += 5) {
        const colour c = table_of(colour_map::viridis)[k];
        const auto linear = [](u8 v) { return std::pow(v / 255.0, 2.2); };
        const f64 brightness = 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b);
        CHECK(brightness > before);
        before = brightness;
    }
    CHECK(colour_at(colour_map::grey, 0.5) == grey(128));
    CHECK(colour_at(colour_map::grey, -1) == black);
    CHECK(colour_at(colour_map::viridis, 7) == table_of(colour_map::viridis).back());
}

TEST_CASE("ranges, colours and planes are read as typed and as printed") {
    picture_style style;
    CHECK((range_text(style) == "auto" && colours_text(style) == "auto"));
    CHECK(read_range("-1.5..2e3", style));
    CHECK((style == picture_style{range_choice::fixed, -1.5, 2000} && range_text(style) == "-1.5..2000"));
    for (const char* bad :
         {"", "1", "1..", "..2", "2..1", "1..1", "1..nan", "0..inf", "a..b", "1..2..3", "1 .. 2"})
        CHECK_FALSE(read_range(bad, style));
    CHECK(style.low == -1.5);
    CHECK((read_range("extremes", style) && range_text(style) == "extremes"));
    CHECK((read_colours("viridis", style) && colours_text(style) == "viridis"));
    CHECK_FALSE(read_colours("jet", style));
    CHECK((read_colours("auto", style) && !style.colours));
    CHECK(plane_from_text("fragment/depth") == plane_choice{"fragment", "depth"});
    CHECK(plane_from_text("fragment") == plane_choice{"fragment", ""});
}
