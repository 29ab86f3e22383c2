// The same frames on the CPU and on the GPU: equal bit for bit, for every mesh, texture, size and scene.
#include <algorithm>
#include <cstring>

#include "core/errors.hpp"
#include "stages/display/display.hpp"
#include "stages/sharpen/sharpen.hpp"
#include "tests/stages/chains.hpp"
#include "tests/stages/painted_boxes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/skip.hpp"

using namespace carousel;
using test::picture_hash;
using test::render_chain;

namespace {

const device::device_id gpu{device::device_kind::cuda, "", 0};

/// The reason why the test has no GPU; "" if there is one.
std::string no_gpu() {
    try {
        (void)device::open(gpu);
        return "";
    } catch (const device_error& e) {
        return e.what();
    }
}

#define NEEDS_GPU()                                       \
    if (const std::string why = no_gpu(); !why.empty()) { \
        CAROUSEL_SKIP(why.c_str());                       \
    }

/// The triangles that the vertex stage has listed, small ones, then large ones; their order depends on
/// threads and warps.
template <typename Chain>
std::vector<u32> listed(Chain& chain) {
    const auto counters = chain.read_bytes("vertex", 0), bytes = chain.read_bytes("vertex", 2);
    std::vector<u32> list(bytes.size() / 4);
    std::memcpy(list.data(), bytes.data(), list.size() * 4);
    u32 small = 0, large = 0;
    std::memcpy(&small, counters.data(), 4);
    std::memcpy(&large, counters.data() + 4, 4);
    REQUIRE(u64{small} + large <= list.size());
    std::sort(list.begin(), list.begin() + small);
    std::sort(list.end() - large, list.end());
    list.erase(list.begin() + small, list.end() - large);
    return list;
}

void require_equal_pictures(const std::string& settings, u32 width, u32 height,
                            std::initializer_list<u64> frames, const kernels::scene_state& scene = {}) {
    INFO(settings << " at " << width << " x " << height);
    auto on_cpu = render_chain({.width = width, .height = height}, settings);
    auto on_gpu = render_chain({.device = gpu, .width = width, .height = height}, settings);
    CHECK(on_cpu->read_asset("mesh") == on_gpu->read_asset("mesh"));
    for (const u64 n : frames) {
        INFO("frame " << n);
        test::run_scene(*on_cpu, n, scene);
        test::run_scene(*on_gpu, n, scene);
        CHECK(on_cpu->read_bytes("geometry", 1) == on_gpu->read_bytes("geometry", 1));
        CHECK(listed(*on_cpu) == listed(*on_gpu));
        CHECK(telemetry::hash_bytes(on_cpu->read_bytes("fragment")) ==
              telemetry::hash_bytes(on_gpu->read_bytes("fragment")));
    }
}

}  // namespace

TEST_CASE("every shape has the same pictures on the CPU and on the GPU") {
    NEEDS_GPU();
    for (const char* mesh : {"bumpy-sphere", "fractal-terrain", "torus-knots", "quad-stack", "triangle-soup",
                             "quad-stack-front-first", "long-slivers"}) {
        for (const char* triangles : {"300", "20000"}) {
            require_equal_pictures(
                R"({"mesh": ")" + std::string(mesh) + R"(", "triangles": )" + triangles + "}", 640, 360,
                {0, 1, 77});
        }
    }
}

TEST_CASE("a million triangles have the same picture on the CPU and on the GPU") {
    NEEDS_GPU();
    require_equal_pictures(R"({"triangles": 1000000})", 1920, 1080, {5});
}

TEST_CASE("odd sizes, instances and textures give the same pictures on the CPU and on the GPU") {
    NEEDS_GPU();
    require_equal_pictures(R"({"triangles": 2000})", 1, 1, {0});
    require_equal_pictures(R"({"triangles": 2000})", 7, 5, {0});
    require_equal_pictures(R"({"triangles": 2000, "copies": 16, "spacing": 0.9})", 333, 222, {0, 9});
    require_equal_pictures(R"({"triangles": 2000, "texture": "white"})", 200, 100, {3});
    require_equal_pictures(R"({"triangles": 2000, "texture": "checker"})", 200, 100, {3});
}

TEST_CASE("a camera inside the mesh, with clipping, gives equal pictures on CPU and GPU") {
    NEEDS_GPU();
    kernels::scene_state scene;
    scene.camera.eye[2] = 0.5F;
    scene.camera.target[0] = 1.0F;
    for (const char* mesh : {"bumpy-sphere", "torus-knots", "triangle-soup", "long-slivers"}) {
        require_equal_pictures(R"({"triangles": 5000, "mesh": ")" + std::string(mesh) + "\"}", 320, 180,
                               {0, 50}, scene);
    }
}

TEST_CASE("a mesh file with a texture has the same pictures on the CPU and on the GPU") {
    NEEDS_GPU();
    scratch_folder folder;
    folder.write("m.mtl", "newmtl plain\nKd 1 1 1\n");
    std::string obj = "mtllib m.mtl\n";
    for (int i = 0; i < 40; ++i) {
        obj += "v " + std::to_string(i % 7 * 0.3) + " " + std::to_string(i % 5 * 0.4) + " " +
               std::to_string(i % 3 * 0.5) + "\n";
    }
    for (int i = 1; i + 7 <= 40; ++i) {
        obj += "f " + std::to_string(i) + " " + std::to_string(i + 3) + " " + std::to_string(i + 7) + "\n";
    }
    require_equal_pictures(R"({"texture": "checker", "mesh": ")" + folder.write("m.obj", obj) + "\"}", 320,
                           180, {0, 10, 200});
}

TEST_CASE("mip-mapped textures and a field of knots give the same pictures on the CPU and on the GPU") {
    NEEDS_GPU();
    require_equal_pictures(R"({"triangles": 2000, "texture": "checker", "filter": "trilinear"})", 333, 222,
                           {3});
    require_equal_pictures(
        R"({"triangles": 2000, "mesh": "torus-knots", "filter": "trilinear", "copies": 40, "arrangement": "field"})",
        333, 222, {0, 9});
}

TEST_CASE("a glTF file with several materials has the same pictures on the CPU and on the GPU") {
    NEEDS_GPU();
    scratch_folder folder;
    require_equal_pictures(R"({"mesh": ")" + test::painted_boxes(folder) + "\"}", 320, 180, {0, 60});
}

TEST_CASE("sharpen and the sink's ledger agree between the CPU and the GPU") {
    NEEDS_GPU();
    const auto image_hash = [](const device::device_id& on, const scratch_folder& folder) {
        testing::chain c({.device = on, .runtime_directory = folder.path.string()});
        c.add("geometry", std::make_unique<stages::geometry>(), R"({"triangles": 5000})");
        c.add("fused", std::make_unique<stages::fused>(), "{}", {"geometry"});
        c.add("sharpen", std::make_unique<stages::sharpen>(), "{}", {"fused"});
        c.add("display", std::make_unique<stages::display>(), R"({"out": ""})", {"sharpen"});
        c.prepare();
        for (u64 n = 0; n < 10; ++n) {
            c.run(n);
        }
        return telemetry::ledger_reader::open(telemetry::ledger_path(folder.path.string(), "display"))
            ->summarize(10)
            .image_hash;
    };
    scratch_folder first;
    scratch_folder second;
    CHECK(image_hash({}, first) == image_hash(gpu, second));
}
