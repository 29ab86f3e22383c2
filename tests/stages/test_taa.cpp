// The stage taa: its state has what it needs of the frame before, and its inputs are checked.
#include <cmath>

#include "stages/light/light.hpp"
#include "stages/scene/picture_parameters.hpp"
#include "stages/taa/taa.hpp"
#include "tests/stages/chains.hpp"
#include "tests/stages/gltf_builder.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::stages;
using test::contains;

namespace {

/// Turning copies up to their light.
std::unique_ptr<testing::chain> lit_copies(const char* of_fragment) {
    auto c = std::make_unique<testing::chain>(testing::chain_options{.width = 48, .height = 32});
    c->add("geometry", std::make_unique<geometry>(), R"({"triangles": 300, "copies": 3})");
    c->add("vertex", std::make_unique<vertex>(), "{}", {"geometry"});
    c->add("fragment", std::make_unique<fragment>(), of_fragment, {"vertex"});
    c->add("light", std::make_unique<light>(), R"({"occlusion": 0})", {"fragment"});
    return c;
}
constexpr const char* with_motion = R"({"output": "surface", "motion": true})";
constexpr const char* without_motion = R"({"output": "surface"})";
const std::vector<std::string> all_inputs = {"light", "fragment", "geometry"};

/// The parameters of frame `n`: the copies turn faster and faster.
picture_parameters parameters_of(u64 n) {
    picture_parameters look;
    look.scene.camera.eye[2] = 8.0F;
    look.scene.spin = 0.01F * static_cast<f32>(n + 1);
    look.scene.jitter = 1.0F;
    return look;
}

}  // namespace

TEST_CASE("a killed taa repeats a frame from the light and the matrices in its state") {
    const auto make = [] {
        auto c = lit_copies(with_motion);
        c->add("taa", std::make_unique<taa>(), "{}", all_inputs);
        c->prepare();
        return c;
    };
    const auto calm = make(), killed = make();
    for (u64 n = 0; n < 5; ++n) {
        calm->run(n, parameters_of(n));
        killed->run(n, parameters_of(n));
        if (n % 2 == 1) {
            killed->kill_and_restart("taa", std::make_unique<taa>());
            killed->run(n, parameters_of(n));
        }
        CHECK(killed->read_bytes("taa") == calm->read_bytes("taa"));
        const std::vector<f32> models = calm->read<f32>("geometry", "models"),
                               kept = calm->read<f32>("taa.state", "models");
        REQUIRE(kept.size() == 3 * 12);
        for (std::size_t i = 0; i < kept.size(); ++i) CHECK(kept[i] == models[i / 12 * 16 + i % 12]);
    }
    // The motion matters: without it the picture is another one.
    const auto still = lit_copies(without_motion);
    still->add("taa", std::make_unique<taa>(), "{}", {"light", "fragment"});
    still->prepare();
    for (u64 n = 0; n < 5; ++n) still->run(n, parameters_of(n));
    CHECK(still->read_bytes("light") == calm->read_bytes("light"));
    CHECK(still->read_bytes("taa") != calm->read_bytes("taa"));
}

namespace {

/// A square of stripes whose upper corners turn a quarter about z within a second, and grow by a morph
/// target.
test::gltf_builder waving() {
    test::gltf_builder b;
    b.square();
    b.primitive()["attributes"]["JOINTS_0"] =
        b.accessor(std::vector<u8>{0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, "VEC4", 5121, 4);
    b.primitive()["attributes"]["WEIGHTS_0"] =
        b.accessor(std::vector<f32>{1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, "VEC4", 5126, 4);
    b.primitive()["targets"] = {
        {{"POSITION", b.accessor(std::vector<f32>{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0}, "VEC3", 5126, 3)}}};
    b.root["meshes"][0]["weights"] = {0};
    b.root["nodes"] = {{{"mesh", 0}, {"skin", 0}}, {{"children", {2}}}, {{"translation", {0, 0, 0}}}};
    b.root["scenes"] = {{{"nodes", {0, 1}}}};
    b.root["skins"] = {{{"joints", {1, 2}}}};
    const f32 half = std::sqrt(0.5F);
    const auto times = b.accessor(std::vector<f32>{0, 1}, "SCALAR", 5126, 1);
    b.root["animations"] = {
        {{"samplers",
          {{{"input", times},
            {"output", b.accessor(std::vector<f32>{0, 0, 0, 1, 0, 0, half, half}, "VEC4", 5126, 4)}},
           {{"input", times}, {"output", b.accessor(std::vector<f32>{0, 1}, "SCALAR", 5126, 1)}}}},
         {"channels",
          {{{"sampler", 0}, {"target", {{"node", 2}, {"path", "rotation"}}}},
           {{"sampler", 1}, {"target", {{"node", 0}, {"path", "weights"}}}}}}}};
    return b;
}

/// A file's mesh up to its light, in `scale` times as many pixels per side.
std::unique_ptr<testing::chain> lit_file(const std::string& path, u32 scale) {
    auto c =
        std::make_unique<testing::chain>(testing::chain_options{.width = 48 * scale, .height = 32 * scale});
    c->add("geometry", std::make_unique<geometry>(), R"({"texture": "checker", "mesh": ")" + path + "\"}");
    c->add("vertex", std::make_unique<vertex>(), "{}", {"geometry"});
    c->add("fragment", std::make_unique<fragment>(), with_motion, {"vertex"});
    c->add("light", std::make_unique<light>(), R"({"occlusion": 0})", {"fragment"});
    return c;
}

/// The mean difference of a picture to one of `scale` times as many pixels per side.
f64 error_of(const std::vector<f32>& picture, const std::vector<f32>& fine, u32 scale) {
    constexpr u32 width = 48, height = 32;
    f64 sum = 0.0;
    for (u32 i = 0; i < width * height * 3; ++i) {
        const u32 x = i / 3 % width, y = i / 3 / width;
        f64 mean = 0.0;
        for (u32 k = 0; k < scale * scale; ++k)
            mean +=
                fine[std::size_t{4} * ((y * scale + k / scale) * (width * scale) + x * scale + k % scale) +
                     i % 3];
        sum += std::abs(mean / (scale * scale) - picture[std::size_t{4} * (i / 3) + i % 3]);
    }
    return sum / (width * height * 3);
}

}  // namespace

TEST_CASE("taa follows skins and morph targets by the pose in its state, also after a kill") {
    scratch_folder folder;
    const std::string path = waving().write(folder);
    const auto make = [&](const std::vector<std::string>& inputs) {
        auto c = lit_file(path, 1);
        c->add("taa", std::make_unique<taa>(), "{}", inputs);
        c->prepare();
        return c;
    };
    const auto followed = make(all_inputs), killed = make(all_inputs), ignored = make({"light", "fragment"});
    const auto fine = lit_file(path, 8);
    fine->prepare();
    f64 with = 0.0, without = 0.0, of_one = 0.0;
    picture_parameters look;
    look.scene.camera.eye[2] = 3.0F;
    look.scene.spin = 0.0F;
    for (u64 n = 0; n < 24; ++n) {
        look.scene.jitter = 1.0F;
        for (testing::chain* c : {followed.get(), killed.get(), ignored.get()}) c->run(n, look);
        if (n % 5 == 3) {
            killed->kill_and_restart("taa", std::make_unique<taa>());
            killed->run(n, look);
        }
        REQUIRE(killed->read_bytes("taa") == followed->read_bytes("taa"));
        CHECK(followed->read<f32>("taa.state", "pose") == followed->read<f32>("geometry", "pose"));
        CHECK(followed->read<f32>("taa.state", "weights") == followed->read<f32>("geometry", "weights"));
        if (n < 8 || n % 4 != 0) continue;
        look.scene.jitter = 0.0F;
        fine->run(n, look);
        const std::vector<f32> expected = fine->read<f32>("light", "radiance");
        with += error_of(followed->read<f32>("taa", "radiance"), expected, 8);
        without += error_of(ignored->read<f32>("taa", "radiance"), expected, 8);
        of_one += error_of(followed->read<f32>("light", "radiance"), expected, 8);
    }
    CAPTURE(with, without, of_one);
    // Half of what one sample per pixel lacks was the limit for all motion that is followed (0.39 here).
    CHECK(with < 0.5 * of_one);
    CHECK(with < 0.9 * without);  // 0.82
}

TEST_CASE("taa refuses inputs that it cannot use, and states what is missing") {
    const auto refusal = [](const char* of_fragment, const std::vector<std::string>& inputs) -> std::string {
        try {
            lit_copies(of_fragment)->add("taa", std::make_unique<taa>(), "{}", inputs);
            return "";
        } catch (const config_error& e) {
            return e.what();
        }
    };
    CHECK_THAT(refusal(without_motion, all_inputs),
               contains("no plane \"triangle\"; set motion = true in that stage"));
    CHECK_THAT(refusal(with_motion, {"light"}),
               contains("needs two or three inputs") && contains("it has 1"));
    CHECK_THAT(refusal(with_motion, {"light", "fragment", "light"}), contains("carousel.scene"));
    CHECK(refusal(with_motion, {"light", "fragment"}).empty());
}
