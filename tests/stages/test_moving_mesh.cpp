// Animations, skins and morph targets of glTF files: the poses of their meshes, and their pictures.
#include <cmath>

#include "kernels/motion_layout.hpp"
#include "stages/geometry/moving_mesh.hpp"
#include "stages/shadow/shadow.hpp"
#include "tests/stages/chains.hpp"
#include "tests/stages/gltf_builder.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::stages;
using nlohmann::json;
using test::contains;
using test::gltf_builder;
using test::picture_hash;

namespace {

void animate(gltf_builder& b, u32 node, const char* path, const std::vector<f32>& times,
             const std::vector<f32>& values, const char* type, u32 width, const char* between = "LINEAR",
             const char* name = "") {
    json animation = {{"name", name},
                      {"samplers",
                       {{{"input", b.accessor(times, "SCALAR", 5126, 1)},
                         {"output", b.accessor(values, type, 5126, width)},
                         {"interpolation", between}}}},
                      {"channels", {{{"sampler", 0}, {"target", {{"node", node}, {"path", path}}}}}}};
    b.root["animations"].push_back(std::move(animation));
}

/// A square whose upper corners follow joint 2, which turns a quarter about z within a second; joint 1 stands
/// still.
gltf_builder bending() {
    gltf_builder b;
    b.square();
    b.primitive()["attributes"]["JOINTS_0"] =
        b.accessor(std::vector<u8>{0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, "VEC4", 5121, 4);
    b.primitive()["attributes"]["WEIGHTS_0"] =
        b.accessor(std::vector<f32>{1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, "VEC4", 5126, 4);
    b.root["nodes"] = {{{"mesh", 0}, {"skin", 0}, {"translation", {5, 5, 5}}},
                       {{"children", {2}}},
                       {{"translation", {0, 0, 0}}}};
    b.root["scenes"] = {{{"nodes", {0, 1}}}};
    b.root["skins"] = {{{"joints", {1, 2}}}};
    const f32 half = std::sqrt(0.5F);
    animate(b, 2, "rotation", {0, 1}, {0, 0, 0, 1, 0, 0, half, half}, "VEC4", 4);
    return b;
}

std::string settings_for(const std::string& path, const std::string& more = "") {
    return R"({"texture": "checker", "mesh": ")" + path + "\"" + more + "}";
}

std::vector<f32> moved_positions(testing::chain& c) {
    const auto bytes = c.read_bytes("vertex", 3);  // the plane "positions"
    std::vector<f32> out(bytes.size() / sizeof(f32));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
}

}  // namespace

TEST_CASE("a skin moves the vertices by its joints, and the node of the mesh does not") {
    scratch_folder folder;
    const std::string path = bending().write(folder);
    auto c = test::render_chain({}, settings_for(path));
    c->run(0);
    const std::vector<f32> start = moved_positions(*c);
    c->run(60);  // a second: the animation begins again
    CHECK(moved_positions(*c) == start);
    c->run(59);
    const std::vector<f32> end = moved_positions(*c);
    REQUIRE(end.size() == 12);
    for (std::size_t i = 0; i < 6; ++i) CHECK(end[i] == start[i]);  // the lower corners
    // the corner (1, 1) is nearly at (-1, 1), where the corner (-1, 1) was
    CHECK(std::abs(end[6] - start[9]) < 0.04F);
    CHECK(std::abs(end[7] - start[10]) < 0.04F);
    // The sphere contains all poses.
    for (const auto* const pose : {&start, &end})
        for (std::size_t i = 0; i < 12; i += 3) {
            const f64 x = (*pose)[i], y = (*pose)[i + 1], z = (*pose)[i + 2];
            CHECK(x * x + y * y + z * z < 1.0001);
        }
}

TEST_CASE("a frame of a moving mesh is made again with the same bytes, and frames differ") {
    scratch_folder folder;
    const std::string path = bending().write(folder);
    auto one = test::render_chain({.cpu_threads = 1}, settings_for(path, R"(, "copies": 2)"));
    auto four = test::render_chain({.cpu_threads = 4}, settings_for(path, R"(, "copies": 2)"));
    const u64 first = picture_hash(*one, 7);
    CHECK(picture_hash(*one, 30) != first);
    CHECK(picture_hash(*one, 7) == first);
    CHECK(picture_hash(*four, 7) == first);
}

TEST_CASE("triangles that turn towards the camera become visible") {
    scratch_folder folder;
    gltf_builder b;
    b.square();
    const f32 half = std::sqrt(0.5F);
    animate(b, 0, "rotation", {0, 0.5, 1}, {0, 1, 0, 0, 0, half, 0, half, 0, 0, 0, 1}, "VEC4", 4);
    auto c = test::render_chain({}, settings_for(b.write(folder), R"(, "loop": false)"));
    const auto listed = [&](u64 frame) {
        c->run(frame);
        const auto bytes = c->read_bytes("vertex");
        kernels::triangle_counters counters;
        std::memcpy(&counters, bytes.data(), sizeof counters);
        return counters.small + counters.large;
    };
    CHECK(listed(0) == 0);
    CHECK(listed(60) == 2);
}

TEST_CASE("clip, speed and loop choose the pose") {
    scratch_folder folder;
    gltf_builder b = bending();
    animate(b, 2, "scale", {0, 2}, {1, 1, 1, 1, 2, 1}, "VEC3", 3, "STEP", "jump");
    const std::string path = b.write(folder);
    const auto at = [&](const std::string& more, u64 frame) {
        auto c = test::render_chain({}, settings_for(path, more));
        c->run(frame);
        return moved_positions(*c);
    };
    const auto usual = at("", 30);
    CHECK(at(R"(, "clip": "0")", 30) == usual);
    CHECK(at(R"(, "clip": "jump")", 30) != usual);
    CHECK(at(R"(, "clip": "1")", 30) == at(R"(, "clip": "jump")", 0));  // steps at 2 s
    CHECK(at(R"(, "speed": 2)", 15) == usual);
    CHECK(at(R"(, "speed": -1)", 30) == usual);  // half a second from both ends
    CHECK(at(R"(, "loop": false)", 90) != at("", 90));
    CHECK(at(R"(, "loop": false)", 90) == at(R"(, "loop": false)", 60));
    geometry g;
    const auto values = settings::from_json(settings_for(path, R"(, "clip": "run")"));
    CHECK_THROWS_WITH(g.configure({"geometry", 64, 48, &values, {}}),
                      contains("clip = \"run\": ") && contains("no such animation; expected none, 0, jump"));
}

TEST_CASE("without an animation a skin and morph weights are applied once, and the mesh does not move") {
    scratch_folder folder;
    gltf_builder b = bending();
    b.root.erase("animations");
    b.root["nodes"][2]["translation"] = {0, 2, 0};
    b.primitive()["targets"] = {
        {{"POSITION", b.accessor(std::vector<f32>{-4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, "VEC3", 5126, 3)}}};
    b.root["meshes"][0]["weights"] = {0.5};
    const moving_mesh m = load_moving_mesh(b.write(folder), "");
    CHECK(!m.motion.layout().moves());
    REQUIRE(m.mesh.vertices.size() == 4);
    // corners (-3, -1), (1, -1), (1, 3), (-1, 3) around (-1, 1)
    const f64 radius = std::sqrt(8.0);
    const f32 expected[4][2] = {{-2, -2}, {2, -2}, {2, 2}, {0, 2}};
    for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t k = 0; k < 2; ++k)
            CHECK(std::abs(m.mesh.vertices[i].position[k] - expected[i][k] / radius) < 1e-6);
    geometry g;
    const auto values = settings::from_json(settings_for((folder.path / "m.gltf").string()));
    const description d = g.configure({"geometry", 64, 48, &values, {}});
    CHECK(d.makes.size() == 1);
    CHECK(d.outputs.at(0).find("pose") == nullptr);
}

TEST_CASE("an animation that moves no vertex leaves the file's mesh as it is") {
    scratch_folder folder;
    gltf_builder still, b;
    for (gltf_builder* of : {&still, &b}) {
        of->square();
        of->root["nodes"] = {{{"mesh", 0}}, json::object()};
    }
    animate(b, 1, "translation", {0, 1}, {0, 0, 0, 9, 9, 9}, "VEC3", 3);
    const moving_mesh m = load_moving_mesh(b.write(folder), ""),
                      expected = load_moving_mesh(still.write(folder, "still.gltf"), "");
    CHECK(!m.motion.layout().moves());
    for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t k = 0; k < 3; ++k)
            CHECK(m.mesh.vertices[i].position[k] == expected.mesh.vertices[i].position[k]);
}

TEST_CASE("morph weights are animated, also of flat triangles, whose normals follow") {
    scratch_folder folder;
    gltf_builder b;
    b.square();
    b.primitive()["attributes"].erase("NORMAL");
    // The target folds the square along its diagonal.
    b.primitive()["targets"] = {
        {{"POSITION", b.accessor(std::vector<f32>{0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0}, "VEC3", 5126, 3)}}};
    animate(b, 0, "weights", {0, 1}, {0, 1}, "SCALAR", 1, "CUBICSPLINE");
    auto& sampler = b.root["animations"][0]["samplers"][0];
    sampler["output"] = b.accessor(std::vector<f32>{0, 0, 0, 0, 1, 0}, "SCALAR", 5126, 1);
    auto c = test::render_chain({}, settings_for(b.write(folder), R"(, "loop": false)"));
    c->run(30);
    const auto half = moved_positions(*c);
    c->run(60);
    const auto full = moved_positions(*c);
    REQUIRE(full.size() == 18);                   // two flat triangles
    const f32 scale = (full[9] - full[12]) / -2;  // from the corner (-1, -1) to (1, 1) of the second one
    CHECK(std::abs((full[5] - full[2]) - 2 * scale) < 1e-5F);
    CHECK(std::abs((half[5] - half[2]) - scale) < 1e-5F);
    const auto bytes = c->read_bytes("vertex", 4);
    kernels::shaded_vertex v[6];
    REQUIRE(bytes.size() == sizeof v);
    std::memcpy(static_cast<void*>(v), bytes.data(), sizeof v);
    // the plane through (-1, -1, 0), (1, -1, 2), (1, 1, 0)
    const f64 length = std::sqrt(3.0);
    CHECK(std::abs(v[0].normal[0] + 1 / length) < 1e-5);
    CHECK(std::abs(v[0].normal[1] - 1 / length) < 1e-5);
    CHECK(v[3].normal[2] == 1);
}

TEST_CASE("instances and several primitives of an animated node move with it") {
    scratch_folder folder;
    gltf_builder b;
    b.square();
    json second = b.primitive();
    b.root["meshes"][0]["primitives"].push_back(second);
    const auto places = b.accessor(std::vector<f32>{0, 0, 0, 6, 0, 0}, "VEC3", 5126, 3);
    b.root["nodes"][0]["extensions"] = {
        {"EXT_mesh_gpu_instancing", {{"attributes", {{"TRANSLATION", places}}}}}};
    b.root["extensionsUsed"] = {"EXT_mesh_gpu_instancing"};
    animate(b, 0, "translation", {0, 1}, {0, 0, 0, 0, 4, 0}, "VEC3", 3);
    auto c = test::render_chain({}, settings_for(b.write(folder), R"(, "loop": false)"));
    c->run(0);
    const auto start = moved_positions(*c);
    c->run(60);
    const auto end = moved_positions(*c);
    REQUIRE(start.size() == 4 * 3 * 4);  // 2 instances of 2 primitives
    const f32 scale = (start[3] - start[0]) / 2;
    for (std::size_t i = 0; i < start.size(); i += 3) {
        CHECK(std::abs(end[i] - start[i]) < 1e-5F);
        CHECK(std::abs(end[i + 1] - start[i + 1] - 4 * scale) < 1e-5F);
    }
    CHECK(std::abs(start[12] - start[0] - 6 * scale) < 1e-5F);  // the second instance follows the first
}

TEST_CASE("the shadow of a moving mesh moves, and the fused stage gives the same picture") {
    scratch_folder folder;
    const std::string path = bending().write(folder);
    testing::chain c({});
    c.add("geometry", std::make_unique<geometry>(), settings_for(path));
    c.add("shadow", std::make_unique<shadow>(), R"({"side": 64})", {"geometry"});
    c.add("vertex", std::make_unique<vertex>(), "{}", {"geometry"});
    c.add("fragment", std::make_unique<fragment>(), "{}", {"vertex"});
    c.add("fused", std::make_unique<fused>(), "{}", {"geometry"});
    c.prepare();
    c.run(10);
    const auto shadow_before = c.read_bytes("shadow");
    CHECK(c.read_bytes("fragment") == c.read_bytes("fused"));
    c.run(50);
    CHECK(c.read_bytes("shadow") != shadow_before);
    CHECK(c.read_bytes("fragment") == c.read_bytes("fused"));
}
