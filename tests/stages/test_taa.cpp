// The stage taa: its state has what it needs of the frame before, and its inputs are checked.
#include "stages/light/light.hpp"
#include "stages/scene/picture_parameters.hpp"
#include "stages/taa/taa.hpp"
#include "tests/stages/chains.hpp"
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
