// Every scene that the geometry stage makes, by the hash of its pictures: they may change only on purpose.
// CPU backend; test_render_gpu.cpp checks that the GPU's pictures are the same.
#include "kernels/body/matrix.hpp"
#include "stages/scene/scene_parameters.hpp"
#include "tests/stages/chains.hpp"
#include "tests/stages/painted_boxes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exception_text.hpp"

using namespace carousel;
using test::contains;
using test::render_chain;

namespace {

/// Combines the hashes of two frames into one.
u64 hash_of(const std::string& settings, const kernels::scene_state& scene = {}) {
    auto c = render_chain({}, settings);
    std::vector<std::byte> both;
    for (const u64 n : {0, 50}) {
        test::run_scene(*c, n, scene);
        const auto picture = c->read_bytes("fragment");
        both.insert(both.end(), picture.begin(), picture.end());
    }
    return telemetry::hash_bytes(both);
}

}  // namespace

TEST_CASE("the scenes' pictures equal the reference pictures") {
    kernels::scene_state orbit;
    orbit.camera.eye[1] = 3.0F;
    orbit.camera.eye[2] = 9.0F;
    orbit.orbit = 0.02F;
    struct scene {
        const char* settings;
        const kernels::scene_state& state;
        u64 hash;
    };
    const kernels::scene_state usual;
    for (
        const scene& s : {
            scene{R"({"mesh": "bumpy-sphere", "triangles": 3000})", usual, 0x930bb5a819b7e98},
            scene{R"({"mesh": "fractal-terrain", "triangles": 3000})", usual, 0x44401f7d6ebdb02e},
            scene{R"({"mesh": "torus-knots", "triangles": 3000})", usual, 0xb5699f580a764787},
            scene{R"({"mesh": "quad-stack", "triangles": 60})", usual, 0xdbcd5c502010d84a},
            scene{R"({"mesh": "quad-stack-front-first", "triangles": 60})", usual, 0xdbcd5c502010d84a},
            scene{R"({"mesh": "triangle-soup", "triangles": 3000})", usual, 0x5d37d4b31beda733},
            scene{R"({"mesh": "long-slivers", "triangles": 3000})", usual, 0xd9b57c2f7b569bc2},
            scene{
                R"({"mesh": "torus-knots", "triangles": 1000, "copies": 60, "arrangement": "field", "filter": "trilinear"})",
                orbit, 0x6a2aeb3c95a311dd},
            scene{R"({"triangles": 3000, "texture": "checker", "filter": "trilinear"})", orbit,
                  0x5807dca6c8da3862},
        }) {
        INFO(s.settings);
        CHECK(hash_of(s.settings, s.state) == s.hash);
    }
}

TEST_CASE("a glTF scene with several nodes, materials and textures has the picture that it had") {
    scratch_folder folder;
    kernels::scene_state scene;
    scene.camera.eye[1] = 0.8F;
    CHECK(hash_of(R"({"mesh": ")" + test::painted_boxes(folder) + "\"}", scene) == 0x85d52d20ec65e6bb);
}

TEST_CASE("the copies of a field are about their spacing apart and never leave their places") {
    std::vector<std::array<f32, 3>> before;
    for (const u64 n : {0U, 500U, 100'000U}) {
        for (u32 i = 0; i < 200; ++i) {
            f32 m[16];
            kernels::body::field_matrix(n, 0.01F, i, 2.0F, m);
            const f64 size = std::sqrt(f64{m[0]} * m[0] + f64{m[4]} * m[4] + f64{m[8]} * m[8]);
            CHECK(size > 0.69);
            CHECK(size < 1.21);
            CHECK(std::abs(m[7]) <= 0.501);
            if (n == 0) {
                for (const auto& other : before) REQUIRE(std::hypot(m[3] - other[0], m[11] - other[2]) > 1.0);
                before.push_back({m[3], m[7], m[11]});
            } else {
                CHECK(m[3] == before[i][0]);
                CHECK(m[11] == before[i][2]);
            }
        }
    }
}

TEST_CASE("the renderer's parameters begin as their struct does, to the bit") {
    const ring::parameter_schema schema = stages::scene_parameters::schema();
    schema.check();
    const stages::scene_parameters defaults;
    REQUIRE(schema.bytes == sizeof defaults);
    const std::vector<std::byte> values = schema.initial_values();
    CHECK(std::memcmp(values.data(), &defaults, sizeof defaults) == 0);
}

TEST_CASE("the camera's path is a circle around the target, a function of the frame's number") {
    kernels::scene_state scene;
    scene.camera.eye[1] = 1.5F;
    scene.camera.target[0] = 2.0F;
    const auto still = stages::scene_at(scene, 12345);
    CHECK(std::memcmp(&still, &scene, sizeof scene) == 0);
    scene.orbit = 0.01F;
    const f64 radius = std::hypot(2.0, 2.6);
    for (const u64 n : {0ULL, 1ULL, 157ULL, 1'000'000ULL, 1ULL << 33U}) {
        const auto& c = stages::scene_at(scene, n).camera;
        CHECK(c.eye[1] == 1.5F);
        CHECK(std::hypot(f64{c.eye[0]} - 2.0, f64{c.eye[2]}) == test::near(radius));
    }
    scene.orbit = 1.57079633F;
    const auto& quarter = stages::scene_at(scene, 1).camera;
    CHECK(quarter.eye[0] == test::near(2.0 + 2.6));
    CHECK(quarter.eye[2] == test::near(2.0));
}

TEST_CASE("a glTF file is drawn without the texture that can't be read, and a warning names its place") {
    scratch_folder folder;
    const std::string path = test::painted_boxes(folder);
    const auto log = [&] {
        return test::exception_text([&] { (void)render_chain({}, R"({"mesh": ")" + path + "\"}"); });
    };
    CHECK(log().find("without it") == std::string::npos);
    std::filesystem::resize_file(folder.path / "stripes.png", 60);
    CHECK_THAT(log(), contains("stripes.png") && contains("drawn without it"));
    std::filesystem::remove(folder.path / "stripes.png");
    CHECK_THAT(log(), contains("stripes.png: No such file"));
}
