// The parameters of light and post: what each changes in the picture of the next frame.
#include <cmath>
#include <cstring>

#include "stages/light/light.hpp"
#include "stages/post/post.hpp"
#include "tests/stages/chains.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using stages::picture_parameters;

namespace {

constexpr u32 columns = 48, rows = 36;

/// A sphere and the sky, by the stages from geometry to post.
class look {
public:
    look() {
        chain_.add("geometry", std::make_unique<stages::geometry>(), R"({"triangles": 800})");
        chain_.add("vertex", std::make_unique<stages::vertex>(), "{}", {"geometry"});
        chain_.add("fragment", std::make_unique<stages::fragment>(),
                   R"({"output": "surface", "materials": "clay"})", {"vertex"});
        chain_.add("light", std::make_unique<stages::light>(), "{}", {"fragment"});
        chain_.add("post", std::make_unique<stages::post>(), "{}", {"light"});
        chain_.prepare();
    }
    /// The linear light of a frame with these parameters.
    std::vector<f32> light(const picture_parameters& p) {
        chain_.run(1, p);
        return chain_.read<f32>("light", "radiance");
    }
    std::vector<std::byte> picture(const picture_parameters& p) {
        chain_.run(1, p);
        return chain_.read_bytes("post");
    }

private:
    testing::chain chain_{testing::chain_options{.width = columns, .height = rows}};
};

/// One for all cases, because the tables of the sky take a second.
look& the_look() {
    static look one;
    return one;
}

constexpr std::size_t middle = 4 * (rows / 2 * columns + columns / 2), corner = 0;

/// Without the sky's light on surfaces.
picture_parameters in_the_sun() {
    picture_parameters p;
    p.scene.ambient = 0.0F;
    p.scene.light[0] = p.scene.light[1] = 0.0F;
    p.scene.light[2] = 1.0F;  // towards the camera
    return p;
}

}  // namespace

TEST_CASE("the parameters of light and post begin as their struct does, to the bit") {
    const ring::parameter_schema schema = picture_parameters::schema();
    schema.check();
    const picture_parameters defaults;
    REQUIRE(schema.bytes == sizeof defaults);
    const std::vector<std::byte> values = schema.initial_values();
    CHECK(std::memcmp(values.data(), &defaults, sizeof defaults) == 0);
}

TEST_CASE("sun, tint, roughness and metallic change the light of a surface as their values state") {
    look& l = the_look();
    picture_parameters p = in_the_sun();
    const std::vector<f32> usual = l.light(p);
    REQUIRE(usual[middle] > 0.1F);
    p.sun *= 2.0F;
    const std::vector<f32> twice = l.light(p);
    CHECK(twice[middle] == 2.0F * usual[middle]);
    CHECK(twice[corner] == usual[corner]);  // the visible sky
    p = in_the_sun();
    p.material.tint[0] = 0.0F;
    const std::vector<f32> tinted = l.light(p);
    CHECK(tinted[middle] < 0.25F * usual[middle]);  // what is left is the reflection of a dielectric
    CHECK(tinted[middle + 1] == usual[middle + 1]);
    p = in_the_sun();
    p.material.roughness = 0.2F;
    CHECK(l.light(p)[middle] > usual[middle]);  // a highlight
    p.material.metallic = 1.0F;
    p.material.roughness = 1.0F;
    const std::vector<f32> metal = l.light(p);
    CHECK(metal[middle] != usual[middle]);
    CHECK(l.light(in_the_sun()) == usual);  // nothing of an earlier frame's parameters is left
}

TEST_CASE("fog mixes a surface with the sky, by its distance") {
    look& l = the_look();
    picture_parameters p = in_the_sun();
    p.scene.light[2] = -1.0F;  // the surface faces away from it
    CHECK(l.light(p)[middle] == 0.0F);
    p.fog = 1.7F;  // about the distance of the surface
    const f32 some = l.light(p)[middle];
    p.fog = 0.1F;
    const f32 all = l.light(p)[middle];
    CHECK(some > 0.3F * all);
    CHECK(some < 0.9F * all);
    p.fog = 0.0F;
    CHECK(l.light(p)[middle] == 0.0F);
}

TEST_CASE("bloom, tone map and exposure change the picture, and bloom 0 is none") {
    look& l = the_look();
    picture_parameters p;
    const auto usual = l.picture(p);
    p.bloom = 0.5F;
    const auto wide = l.picture(p);
    CHECK(wide != usual);
    p.bloom = 0.0F;
    CHECK(l.picture(p) != usual);
    p.bloom = 0.06F;
    for (const auto map : {kernels::tone_map_name::linear, kernels::tone_map_name::aces}) {
        p.tone_map = static_cast<u32>(map);
        CHECK(l.picture(p) != usual);
    }
    p = {};
    p.scene.exposure = 0.0F;
    for (const std::byte b : l.picture(p)) REQUIRE((b == std::byte{0} || b == std::byte{255}));
    CHECK(l.picture({}) == usual);
}

TEST_CASE("the exposure follows the light of the picture, and a killed post continues with it") {
    const auto make = [] {
        auto c = std::make_unique<testing::chain>(testing::chain_options{.width = columns, .height = rows});
        c->add("geometry", std::make_unique<stages::geometry>(), R"({"triangles": 800})");
        c->add("vertex", std::make_unique<stages::vertex>(), "{}", {"geometry"});
        c->add("fragment", std::make_unique<stages::fragment>(), R"({"output": "surface"})", {"vertex"});
        c->add("light", std::make_unique<stages::light>(), "{}", {"fragment"});
        c->add("post", std::make_unique<stages::post>(), R"({"auto_exposure": true, "adaptation": 4})",
               {"light"});
        c->prepare();
        return c;
    };
    const auto calm = make(), killed = make();
    picture_parameters p = in_the_sun();
    const auto factor = [&] { return calm->read<f32>("post.state", "exposure")[1]; };
    const auto run = [&](u64 n) {
        calm->run(n, p);
        killed->run(n, p);
        if (n % 4 == 1) {
            killed->kill_and_restart("post", std::make_unique<stages::post>());
            killed->run(n, p);
        }
        REQUIRE(killed->read_bytes("post") == calm->read_bytes("post"));
    };
    run(0);
    // The first frame has the exposure that it asks for: 0.18 for the geometric mean of the luminance.
    const std::vector<f32> light = calm->read<f32>("light", "radiance");
    f64 sum = 0.0;
    for (std::size_t i = 0; i < light.size(); i += 4)
        sum += std::log2(
            std::max(0.2126 * light[i] + 0.7152 * light[i + 1] + 0.0722 * light[i + 2], 1.0 / 4096));
    const f64 asked = 0.18 / std::exp2(sum / (columns * rows));
    CHECK(std::abs(factor() / asked - 1.0) < 0.002);
    const f32 before = factor();
    p.sun *= 8.0F;
    run(1);
    const f32 after_one = factor();
    for (u64 n = 2; n < 24; ++n) run(n);
    const f32 settled = factor();
    CHECK(after_one < before);
    CHECK(settled < after_one);
    // Of the change in stops, the first frame has a quarter, and 23 frames have all but 0.75^23.
    CHECK(std::abs(std::log2(after_one / before) / std::log2(settled / before) - 0.25) < 0.01);
}

TEST_CASE("a pipeline without light and post has none of their parameters") {
    stages::geometry g;
    const auto none = settings::from_json("{}");
    const description d = g.configure({"geometry", 64, 48, &none, {}});
    CHECK(d.parameters.find("sun") == nullptr);
    CHECK(picture_parameters::schema().find("sun") != nullptr);
}
