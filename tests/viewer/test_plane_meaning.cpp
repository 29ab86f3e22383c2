// Planes whose values have a known meaning: the G-buffer, linear light, unit vectors, identifiers.
#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "kernels/body/surface.hpp"
#include "kernels/surface_planes.hpp"
#include "tests/support/catch.hpp"
#include "tests/viewer/painted.hpp"
#include "viewer/watch/picture_choice.hpp"

using namespace carousel;
using namespace carousel::viewer;
using ring::element;
using test::paint;
using test::painted;

namespace {

constexpr u32 columns = 2, rows = 2;

ring::frame_format surface() {
    ring::frame_format f{kernels::surface_format, {}, {}};
    f.planes = {{"albedo", element::u8_, {rows, columns, 4}},
                {"normal", element::u32_, {rows, columns}},
                {"material", element::u8_, {rows, columns, 4}},
                {"depth", element::f32_, {rows, columns}}};
    (void)f.lay_out();
    return f;
}

plane_picture only(const char* type, ring::plane p) {
    ring::frame_format f{type, {std::move(p)}, {}};
    (void)f.lay_out();
    const auto found = pictures_of(f);
    REQUIRE(found.size() == 1);
    return found.front();
}

picture_style with(colour_map map) {
    picture_style out;
    out.colours = map;
    return out;
}

bool is_near(colour a, colour b) {
    return std::abs(a.r - b.r) <= 1 && std::abs(a.g - b.g) <= 1 && std::abs(a.b - b.b) <= 1;
}

}  // namespace

TEST_CASE("pixels without a surface are black in the depth of a G-buffer, and affect no range") {
    const painted seen = paint(*picture_of(surface(), "depth"), std::vector<f32>{0, 0.25F, 0.5F, 0});
    CHECK((seen.scale.low == 0.25 && seen.scale.high == 0.5 && seen.scale.below == 0));
    CHECK((seen.at(0) == colour{} && seen.at(3) == colour{}));
    CHECK(seen.at(1) == table_of(colour_map::viridis).front());
    CHECK(seen.at(2) == table_of(colour_map::viridis).back());
    // the same values in a plane of another meaning
    CHECK(paint(only("any", {"depth", element::f32_, {rows, columns}}), std::vector<f32>{0, 0.25F, 0.5F, 0})
              .scale.low == 0);
    const plane_picture shadow = only(kernels::shadow_format, {"depth", element::f32_, {rows, columns}});
    CHECK(paint(shadow, std::vector<f32>{0, 0.25F, 0.5F, 0}).scale.low == 0.25);
}

TEST_CASE("octahedral normals are shown as vectors, and their text has both forms") {
    const plane_picture p = *picture_of(surface(), "normal");
    const auto packed = [](f32 x, f32 y, f32 z) { return kernels::body::pack_normal({x, y, z}); };
    const std::vector<u32> values{packed(1, 0, 0), packed(0, 1, 0), packed(0, 0, -1), 0};
    const painted seen = paint(p, values);
    CHECK(seen.scale.colours == colour_map::normals);
    CHECK_FALSE(seen.scale.has_ends());
    CHECK(is_near(seen.at(0), {255, 128, 128}));
    CHECK(is_near(seen.at(1), {128, 255, 128}));
    CHECK(is_near(seen.at(2), {128, 128, 0}));
    CHECK(seen.at(3) == colour{});
    const std::string text = pixel_text(p, reinterpret_cast<const std::byte*>(values.data()), 1, 0);
    CHECK(text == std::to_string(values[1]) + " (x 0.000 y 1.000 z 0.000)");
    CHECK(paint(p, values, with(colour_map::grey)).scale.has_ends());
}

TEST_CASE("float normals map -1 to black and 1 to the full channel") {
    const plane_picture p = only("any", {"normals", element::f32_, {1 + 1, 2, 3}});
    const painted seen = paint(p, std::vector<f32>{1, 0, -1, 0, 0, 1, 0, 1, 0, NAN, 0, 0});
    CHECK(seen.at(0) == colour{255, 128, 0});
    CHECK(seen.at(2) == colour{128, 255, 128});
    CHECK((seen.at(3) == no_number_colour && seen.scale.nan == 1));
}

TEST_CASE("the material of a G-buffer names its channels, and each can be shown alone") {
    const plane_picture p = *picture_of(surface(), "material");
    CHECK_FALSE(p.is_rgba());
    CHECK(p.channel_names == std::vector<std::string>{"roughness", "metallic", "clearcoat", "emission"});
    const std::vector<u8> values{10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150, 160};
    CHECK(paint(p, values).at(1) == colour{50, 60, 70});
    CHECK(pixel_text(p, reinterpret_cast<const std::byte*>(values.data()), 0, 0) ==
          "roughness 10 metallic 20 clearcoat 30 emission 40");
    picture_style style;
    style.channel = "emission";
    CHECK(paint(p, values, style).at(1) == colour{80, 80, 80});
    style.range = range_choice::extremes;
    CHECK((paint(p, values, style).scale.low == 40 && paint(p, values, style).scale.high == 160));
    style = {};
    style.channel = "no such channel";
    CHECK(paint(p, values, style).at(1) == colour{50, 60, 70});
    CHECK(picture_of(surface(), "albedo")->is_rgba());
    CHECK(picture_of(surface(), "albedo")->channel_names.empty());
}

TEST_CASE("linear light is shown by exposure, tone map and sRGB") {
    const plane_picture p = only(kernels::radiance_format, {"radiance", element::f32_, {rows, columns, 4}});
    const std::vector<f32> values{0.25F, 0.25F, 0.25F, 1, 0, 0, 0, 1, 64, 64, 64, 1, -1, INFINITY, NAN, 1};
    picture_style style;
    style.tone = tone_map::linear;
    const painted plain = paint(p, values, style);
    CHECK((plain.scale.colours == colour_map::light && !plain.scale.has_ends()));
    CHECK(is_near(plain.at(0), {137, 137, 137}));  // IEC 61966-2-1 of 0.25
    CHECK((plain.at(1) == colour{} && plain.at(2) == colour{255, 255, 255}));
    CHECK((plain.at(3) == no_number_colour && plain.scale.nan == 1));
    style.exposure = 1;
    CHECK(is_near(paint(p, values, style).at(0), {188, 188, 188}));  // of 0.5
    style.exposure = -8;
    CHECK(is_near(paint(p, values, style).at(2), {137, 137, 137}));
    // The compressed tone maps keep bright light below white, and differ from one another.
    style = {};
    style.exposure = -4;
    std::set<std::tuple<u8, u8, u8>> shown;
    for (const tone_map map : {tone_map::linear, tone_map::neutral, tone_map::aces}) {
        style.tone = map;
        const colour c = paint(p, values, style).at(2);
        CHECK((c.r == 255) == (map == tone_map::linear));
        shown.emplace(c.r, c.g, c.b);
    }
    CHECK(shown.size() == 3);
    const plane_picture half = only("any.linear", {"any", element::f16_, {rows, columns, 3}});
    CHECK(paint(half, std::vector<u16>(12, 0x3800)).scale.colours == colour_map::light);
}

TEST_CASE("packed emission is light, with the exponent that its channels share") {
    ring::frame_format f{kernels::surface_format, {{"emission", element::u32_, {rows, columns}}}, {}};
    (void)f.lay_out();
    const plane_picture p = *picture_of(f, "emission");
    const auto packed = [](u32 r, u32 g, u32 b, u32 exponent) {
        return r | g << 9U | b << 18U | exponent << 27U;
    };
    // 256 * 2^(14 - 24) = 0.25
    const std::vector<u32> values{packed(256, 128, 0, 14), 0, packed(511, 511, 511, 31), packed(1, 0, 0, 0)};
    picture_style style;
    style.tone = tone_map::linear;
    const painted seen = paint(p, values, style);
    CHECK(seen.scale.colours == colour_map::light);
    CHECK(is_near(seen.at(0), {137, 99, 0}));
    CHECK((seen.at(1) == colour{} && seen.at(2) == colour{255, 255, 255}));
    CHECK(pixel_text(p, reinterpret_cast<const std::byte*>(values.data()), 0, 0) ==
          "red 0.25 green 0.125 blue 0");
}

TEST_CASE("neighbouring labels have different colours, and 0 is black") {
    const plane_picture p = only("any", {"instance", element::u32_, {64, 64}});
    std::vector<u32> values(64 * 64);
    for (u32 k = 0; k < values.size(); ++k) values[k] = k;
    const painted seen = paint(p, values);
    CHECK((seen.scale.colours == colour_map::labels && seen.at(0) == colour{}));
    std::size_t similar = 0;
    for (std::size_t k = 1; k < values.size(); ++k) {
        const colour a = seen.at(k - 1), b = seen.at(k);
        similar += std::abs(a.r - b.r) + std::abs(a.g - b.g) + std::abs(a.b - b.b) < 24 ? 1 : 0;
    }
    CHECK(similar < values.size() / 100);
    CHECK(paint(p, std::vector<u32>(values.size(), 7)).at(3) == seen.at(7));
}

TEST_CASE("a map that can't show a plane has no effect on it") {
    const plane_picture depth = only("any", {"d", element::f32_, {rows, columns}});
    const std::vector<f32> values{1, 2, 3, 4};
    for (const colour_map map : {colour_map::labels, colour_map::normals})
        CHECK(paint(depth, values, with(map)).rgba == paint(depth, values).rgba);
    CHECK(maps_of(depth) ==
          std::vector<colour_map>{colour_map::grey, colour_map::viridis, colour_map::light});
    CHECK(maps_of(*picture_of(surface(), "albedo")).empty());
}

TEST_CASE("exposure, tone map and channel have text forms, and other texts are refused") {
    picture_style style;
    CHECK((exposure_text(style) == "0" && channel_text(style) == "all"));
    CHECK((read_exposure("-1.5", style) && style.exposure == -1.5 && exposure_text(style) == "-1.5"));
    for (const char* wrong : {"", "1e", "17", "-17", "nan", "inf", "x"})
        CHECK_FALSE(read_exposure(wrong, style));
    CHECK(style.exposure == -1.5);
    CHECK((read_tone_map("aces", style) && style.tone == tone_map::aces));
    CHECK_FALSE(read_tone_map("ACES", style));
    for (const tone_map map : {tone_map::linear, tone_map::neutral, tone_map::aces})
        CHECK(tone_map_named(name_of(map)) == map);
    read_channel("metallic", style);
    CHECK(channel_text(style) == "metallic");
    read_channel("all", style);
    CHECK(style.channel.empty());
}
