// The render stages together, on the CPU: what the pictures depend on, and what they don't.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "picture/png.hpp"
#include "stages/display/picture_file.hpp"
#include "tests/stages/chains.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using test::contains;
using test::picture_hash;
using test::render_chain;

namespace {

const std::string sphere = R"({"mesh": "bumpy-sphere", "triangles": 2000})";

/// Pixels of the last picture that differ from its top left one.
u64 pixels_drawn(testing::chain& c, const std::string& stage = "fragment") {
    const auto picture = c.read_bytes(stage);
    u64 count = 0;
    for (std::size_t i = 0; i < picture.size(); i += 4) {
        count += std::memcmp(&picture[i], picture.data(), 4) != 0 ? 1 : 0;
    }
    return count;
}

}  // namespace

TEST_CASE("every shape renders a picture, another per frame, equal for equal frames") {
    for (const char* mesh : {"bumpy-sphere", "fractal-terrain", "torus-knots", "quad-stack", "triangle-soup",
                             "quad-stack-front-first", "long-slivers"}) {
        INFO(mesh);
        auto c = render_chain({}, R"({"triangles": 3000, "mesh": ")" + std::string(mesh) + "\"}");
        const u64 first = picture_hash(*c, 0);
        CHECK(pixels_drawn(*c) > 320 * 180 / 50);
        const u64 later = picture_hash(*c, 40);
        CHECK(first != later);
        CHECK(picture_hash(*c, 0) == first);
        CHECK(picture_hash(*c, 40) == later);
    }
}

TEST_CASE("quads front to back and back to front give one picture: the nearer one wins") {
    auto back_first = render_chain({}, R"({"mesh": "quad-stack", "triangles": 60})");
    auto front_first = render_chain({}, R"({"mesh": "quad-stack-front-first", "triangles": 60})");
    CHECK(back_first->read_asset("mesh") != front_first->read_asset("mesh"));
    for (const u64 n : {0, 9}) {
        CHECK(picture_hash(*front_first, n) == picture_hash(*back_first, n));
    }
}

TEST_CASE("a picture depends on frame number and scene only, not on earlier frames or threads") {
    auto one = render_chain({.cpu_threads = 1}, sphere);
    auto four = render_chain({.cpu_threads = 4}, sphere);
    for (u64 n = 0; n < 5; ++n) {
        (void)picture_hash(*one, n);
    }
    CHECK(picture_hash(*one, 7) == picture_hash(*four, 7));
}

TEST_CASE("camera and scene settings change the picture") {
    auto c = render_chain({}, sphere);
    const u64 usual = picture_hash(*c, 3);
    kernels::scene_state scene;
    scene.camera.eye[2] = 4.0F;
    test::run_scene(*c, 3, scene);
    CHECK(telemetry::hash_bytes(c->read_bytes("fragment")) != usual);
    scene = {};
    scene.ambient = 0.5F;
    test::run_scene(*c, 3, scene);
    CHECK(telemetry::hash_bytes(c->read_bytes("fragment")) != usual);
}

TEST_CASE("vertex and fragment in one stage give the picture of the two") {
    auto two = render_chain({}, sphere);
    testing::chain one({});
    one.add("geometry", std::make_unique<stages::geometry>(), sphere);
    one.add("fused", std::make_unique<stages::fused>(), "{}", {"geometry"});
    one.prepare();
    for (const u64 n : {0, 1, 100}) {
        CHECK(picture_hash(one, n, "fused") == picture_hash(*two, n));
    }
}

TEST_CASE("odd sizes are rendered") {
    for (const auto& [width, height] : {std::pair<u32, u32>{1, 1}, {7, 5}, {333, 77}}) {
        auto c = render_chain({.width = width, .height = height}, sphere);
        c->run(0);
        CHECK(c->read_bytes("fragment").size() == std::size_t{width} * height * 4);
    }
}

TEST_CASE("more instances draw more of the picture") {
    auto one = render_chain({}, sphere);
    auto nine = render_chain({}, R"({"triangles": 2000, "copies": 9, "spacing": 1.5})");
    one->run(0);
    nine->run(0);
    CHECK(pixels_drawn(*nine) > pixels_drawn(*one));
}

TEST_CASE("a mesh file is drawn with the texture that its material names, or the one of the settings") {
    scratch_folder folder;
    const std::vector<std::byte> red = {std::byte{255}, std::byte{0}, std::byte{0}, std::byte{255}};
    stages::write_picture_file(folder.path / "red.png", encode_png(red, 1, 1));
    folder.write("m.mtl", "newmtl painted\nmap_Kd red.png\n");
    const std::string obj = folder.write(
        "m.obj", "mtllib m.mtl\nv -1 -1 0\nv 1 -1 0\nv 1 1 0\nv -1 1 0\nusemtl painted\nf 1 2 3 4\n");
    const auto middle_of = [](const std::string& settings) {
        auto c = render_chain({}, settings);
        c->run(0, stages::scene_parameters{});
        const auto picture = c->read_bytes("fragment");
        const auto* p = &picture[(90 * 320 + 160) * 4];
        return std::array<int, 3>{static_cast<int>(p[0]), static_cast<int>(p[1]), static_cast<int>(p[2])};
    };
    const auto painted = middle_of(R"({"mesh": ")" + obj + "\"}");
    CHECK(painted[0] > 100);
    CHECK(painted[1] == 0);
    CHECK(painted[2] == 0);
    const auto white = middle_of(R"({"texture": "white", "mesh": ")" + obj + "\"}");
    CHECK(white[0] == painted[0]);
    CHECK(white[1] == white[0]);
    const auto red_sphere =
        middle_of(R"({"triangles": 2000, "texture": ")" + (folder.path / "red.png").string() + "\"}");
    CHECK(red_sphere[0] > 0);
    CHECK(red_sphere[1] == 0);
}

TEST_CASE("a texture's picture is upright: texture coordinate (0, 1) is the top left pixel") {
    scratch_folder folder;
    std::vector<std::byte> corners;
    // top left, top right, bottom left, bottom right
    for (const int c : {0xFF0000, 0x00FF00, 0x0000FF, 0xFFFFFF}) {
        for (const int channel : {c >> 16, c >> 8, c, 255}) {
            corners.push_back(static_cast<std::byte>(channel));
        }
    }
    stages::write_picture_file(folder.path / "corners.png", encode_png(corners, 2, 2));
    const std::string obj =
        folder.write("m.obj",
                     "v -1 -1 0\nv 1 -1 0\nv 1 1 0\nv -1 1 0\nvt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\n"
                     "f 1/1 2/2 3/3 4/4\n");
    auto c = render_chain({.width = 200, .height = 200}, R"({"mesh": ")" + obj + R"(", "texture": ")" +
                                                             (folder.path / "corners.png").string() + "\"}");
    c->run(0, stages::scene_parameters{});  // from the front
    const auto picture = c->read_bytes("fragment");
    const auto strongest = [&](std::size_t x, std::size_t y) {
        const auto* p = &picture[(y * 200 + x) * 4];
        return static_cast<int>(p[0]) > 2 * static_cast<int>(p[1])   ? "red"
               : static_cast<int>(p[1]) > 2 * static_cast<int>(p[0]) ? "green"
               : static_cast<int>(p[2]) > 2 * static_cast<int>(p[0]) ? "blue"
                                                                     : "white";
    };
    CHECK(strongest(60, 60) == std::string("red"));
    CHECK(strongest(140, 60) == std::string("green"));
    CHECK(strongest(60, 140) == std::string("blue"));
    CHECK(strongest(140, 140) == std::string("white"));
}

TEST_CASE("the asset of a procedural mesh with another texture holds the same triangles") {
    testing::chain own({});
    own.add("geometry", std::make_unique<stages::geometry>(), sphere);
    own.prepare();
    testing::chain white({});
    const auto made = white
                          .add("geometry", std::make_unique<stages::geometry>(),
                               R"({"triangles": 2000, "texture": "white"})")
                          .makes;
    white.prepare();
    REQUIRE(made.size() == 1);
    CHECK(made[0].name == "mesh");
    const auto a = own.read_asset("mesh");
    const auto b = white.read_asset("mesh");
    const auto layout = kernels::lay_out_mesh({0, 0, 1, 1});
    REQUIRE(b.size() > layout.bytes);
    kernels::mesh_header header;
    std::memcpy(&header, b.data(), sizeof header);
    CHECK(header.magic == kernels::mesh_magic);
    CHECK(header.counts.texture_width == 1);
    const auto full = kernels::lay_out_mesh(header.counts);
    CHECK(
        std::equal(a.begin() + 256, a.begin() + static_cast<std::ptrdiff_t>(full.texture), b.begin() + 256));
}
