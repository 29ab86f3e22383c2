#include <string>

#include "core/errors.hpp"
#include "frame/frame_format.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using ring::element;
using ring::frame_format;
using test::contains;

namespace {

frame_format image(u64 width, u64 height) {
    return {"carousel.image.rgba8", {{"color", element::u8_, {height, width, 4}, {}, 0}}, {}};
}

std::string message_of(const frame_format& offered, const frame_format& expected) {
    try {
        ring::require_format(offered, expected, "fragment", "vertex");
    } catch (const config_error& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("planes follow the status word, aligned to 256 bytes, and the slot is a multiple of that") {
    frame_format f{"t",
                   {{"a", element::u8_, {1}, {}, 0},
                    {"b", element::f32_, {3, 5}, {}, 0},
                    {"c", element::u64_, {33}, {}, 0}},
                   {}};
    CHECK(f.lay_out() == 256 + 256 + 256 + 512);
    CHECK(f.planes[0].offset == 256);
    CHECK(f.planes[1].offset == 512);
    CHECK(f.planes[2].offset == 768);
    CHECK(f.planes[1].bytes() == 60);
}

TEST_CASE("strides count to the last element only") {
    frame_format f{"t", {{"rows", element::f32_, {2, 3}, {1024, 4}, 0}}, {}};
    CHECK(f.lay_out() == 256 + 1280);
    CHECK(f.planes[0].bytes() == 1024 + 8 + 4);
    CHECK_THAT(f.describe(), contains("f32[2][3] strides (1024, 4) bytes"));
}

TEST_CASE("shapes that can't be laid out are refused, overflows included") {
    const auto refused = [](ring::plane p) {
        frame_format f{"t", {std::move(p)}, {}};
        CHECK_THROWS_AS(f.lay_out(), config_error);
    };
    refused({"p", element::u8_, {}, {}, 0});
    refused({"p", element::u8_, {1, 1, 1, 1, 1}, {}, 0});
    refused({"p", element::u8_, {4, 0}, {}, 0});
    refused({"p", element::u8_, {(u64{1} << 40) + 1}, {}, 0});
    refused({"p", element::f64_, {u64{1} << 32, u64{1} << 32}, {}, 0});
    refused({"p", element::u8_, {2, 2}, {u64{1} << 63, 1}, 0});
    refused({"p", element::u8_, {2, 2}, {2}, 0});
    refused({"", element::u8_, {1}, {}, 0});
    frame_format twice{"t", {{"p", element::u8_, {1}, {}, 0}, {"p", element::u8_, {1}, {}, 0}}, {}};
    CHECK_THROWS_AS(twice.lay_out(), config_error);
    frame_format together{
        "t", {{"p", element::u8_, {u64{1} << 39}, {}, 0}, {"q", element::u8_, {u64{1} << 39}, {}, 0}}, {}};
    CHECK_THROWS_AS(together.lay_out(), config_error);
}

TEST_CASE("a description names type, planes and constants") {
    auto f = image(1280, 720);
    CHECK(f.describe() == "carousel.image.rgba8 {color: u8[720][1280][4]}");
    f.constants["count"] = 3;
    CHECK(f.describe() == "carousel.image.rgba8 {color: u8[720][1280][4], count = 3}");
    CHECK(frame_format{}.describe() == "nothing");
}

TEST_CASE("a format survives JSON unchanged") {
    frame_format f{"t",
                   {{"a", element::f16_, {7, 5}, {16, 2}, 0}, {"b", element::i32_, {u64{1} << 33}, {}, 0}},
                   {{"n", 0.1}}};
    (void)f.lay_out();
    CHECK(frame_format::from_json(f.to_json()) == f);
}

TEST_CASE("each element type has a name and a size and is restored from JSON") {
    const std::vector<std::tuple<element, const char*, u64>> all = {
        {element::u8_, "u8", 1},           {element::u16_, "u16", 2}, {element::u32_, "u32", 4},
        {element::u64_, "u64", 8},         {element::i8_, "i8", 1},   {element::i16_, "i16", 2},
        {element::i32_, "i32", 4},         {element::i64_, "i64", 8}, {element::f8_e4m3_, "f8_e4m3", 1},
        {element::f8_e5m2_, "f8_e5m2", 1}, {element::f16_, "f16", 2}, {element::bf16_, "bf16", 2},
        {element::f32_, "f32", 4},         {element::f64_, "f64", 8}, {element::bool_, "bool", 1}};
    for (const auto& [type, name, bytes] : all) {
        CAPTURE(name);
        CHECK(std::string(ring::name_of(type)) == name);
        CHECK(ring::element_bytes(type) == bytes);
        frame_format f{"t", {{"p", type, {3, 5}, {}, 0}}, {}};
        (void)f.lay_out();
        CHECK(f.planes[0].bytes() == 15 * bytes);
        CHECK(f.describe() == std::string("t {p: ") + name + "[3][5]}");
        CHECK(frame_format::from_json(f.to_json()) == f);
    }
    CHECK_THROWS_WITH(ring::require_format({"t", {{"p", element::bf16_, {4}, {}, 0}}, {}},
                                           {"t", {{"p", element::f16_, {4}, {}, 0}}, {}}, "b", "a"),
                      contains("plane \"p\" has elements of bf16, expected f16"));
}

TEST_CASE("JSON that is not a format, or whose planes are placed differently, is refused") {
    CHECK_THROWS_AS(frame_format::from_json("{"), config_error);
    CHECK_THROWS_AS(frame_format::from_json("[]"), config_error);
    CHECK_THROWS_AS(frame_format::from_json(R"({"type": "t"})"), config_error);
    CHECK_THROWS_AS(
        frame_format::from_json(R"({"type":"t","planes":[{"name":"p","element":"u7","shape":[1]}]})"),
        config_error);
    CHECK_THROWS_AS(
        frame_format::from_json(R"({"type":"t","planes":[{"name":"p","element":"u8","shape":[0]}]})"),
        config_error);
    CHECK_THROWS_WITH(frame_format::from_json(
                          R"({"type":"t","planes":[{"name":"p","element":"u8","shape":[1],"offset":257}]})"),
                      contains("offset 257, expected 256"));
}

TEST_CASE("a consumer refuses what it can't read and shows both descriptions") {
    CHECK(message_of(image(64, 32), image(64, 32)).empty());
    CHECK(message_of(image(64, 32), image(0, 0)).empty());
    const std::string text = message_of(image(64, 32), image(65, 32));
    CHECK_THAT(text, contains("\"fragment\"") && contains("\"vertex\""));
    CHECK_THAT(text, contains("u8[32][64][4]") && contains("u8[32][65][4]"));

    auto other = image(64, 32);
    other.type = "carousel.geometry";
    CHECK_THAT(message_of(other, image(0, 0)), contains("another type") && contains("u8[*][*][4]"));
    other = image(64, 32);
    other.planes[0].type = element::f32_;
    CHECK_THAT(message_of(other, image(0, 0)), contains("elements of f32, expected u8"));
    other = image(64, 32);
    other.planes[0].name = "colour";
    CHECK_THAT(message_of(other, image(0, 0)), contains("plane \"color\" is missing"));
    other = image(64, 32);
    other.planes[0].strides = {512, 4, 1};
    CHECK_THAT(message_of(other, image(0, 0)), contains("other strides"));
    other.planes[0].strides = {256, 4, 1};  // explicit, but dense
    CHECK(message_of(other, image(0, 0)).empty());
}
