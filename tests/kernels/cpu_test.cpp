// Case 6 on the CPU (threads, instruction sets, repeats, odd sizes), case 7 with the least memory, meshes,
// sharpening, errors.
#include <array>

#include "device/cpu/pool.hpp"
#include "kernels/cpu/entries.hpp"
#include "tests/kernels/backend.hpp"
#include "tests/kernels/reference.hpp"

using namespace carousel;
using namespace carousel::kernels;
using namespace carousel::kernels::testing;

namespace {

u32 triangles_for(mesh_shape shape) { return shape == mesh_shape::quad_stack ? 40 : many_triangles / 3; }

/// Frame `frame_number` through the instruction set `use`, with a scratch block of the caller's.
std::vector<u32> render_with(chain& c, const cpu::entries& use, u32 width, u32 height, u32 threads,
                             scratch_memory& scratch, const device::mapping& mesh_memory) {
    (void)mesh_memory;
    device::cpu::pool pool(threads);
    std::vector<u32> picture(u64{width} * height);
    draw_record draw{1, {}};
    std::array<f32, 16> model{};
    body::model_matrix(5, c.scene.spin, 0, 1, 2.4F, model.data());
    cpu::run_vertex_stage(
        pool, {c.layout(), mesh_memory.data(), &draw, model.data(), c.scene, width, height, c.buffers()},
        use);
    cpu::run_fragment_stage(
        pool,
        {c.layout(), mesh_memory.data(), c.buffers(), c.scene, width, height,
         reinterpret_cast<u8*>(picture.data()), scratch.data(), scratch.size(), raster_path::automatic},
        use);
    return picture;
}

}  // namespace

TEST_CASE("One thread and three give the same pictures, and so does every repeat") {
    for (const mesh_shape shape : shapes) {
        const chain_options options{shape, triangles_for(shape), 333, 201, 1};
        backend one = open_backend(device::device_kind::cpu, 1),
                three = open_backend(device::device_kind::cpu, 3);
        chain a(*one.context, *one.queue, options), b(*three.context, *three.queue, options);
        REQUIRE(a.mesh_bytes() == b.mesh_bytes());
        for (const u32 mode : {0U, 1U, 2U, 3U}) {
            a.scene.shading = b.scene.shading = mode;
            const std::vector<u32> picture = a.render(11);
            CAPTURE(static_cast<int>(shape), mode);
            for (u32 repeat = 0; repeat < (sanitized ? 1 : 3); ++repeat)
                REQUIRE(differences(b.render(11), picture) == 0);
        }
    }
}

TEST_CASE("Every instruction set gives the same pictures, also with the least memory for bins") {
    const u32 width = 333, height = 201;
    backend on = open_backend(device::device_kind::cpu, 2);
    for (const mesh_shape shape : shapes) {
        const u32 triangles = shape == mesh_shape::quad_stack ? 40 : many_triangles;
        chain c(*on.context, *on.queue, {shape, triangles, width, height, 1});
        const std::vector<std::byte> bytes = c.mesh_bytes();
        const auto mesh = on.context->allocate(bytes.size());
        std::memcpy(mesh->data(), bytes.data(), bytes.size());
        const std::vector<u32> expected = c.render(5);
        scratch_memory most(cpu::fragment_scratch_bytes(width, height)),
            least(cpu::least_scratch_bytes(width, height));
        for (const char* name : {"baseline", "avx2", "avx512"}) {
            const cpu::entries* use = cpu::find_entries(name);
            if (use == nullptr) continue;
            CAPTURE(name, static_cast<int>(shape));
            REQUIRE(differences(render_with(c, *use, width, height, 2, most, *mesh), expected) == 0);
            REQUIRE(differences(render_with(c, *use, width, height, 2, least, *mesh), expected) == 0);
            REQUIRE(differences(render_with(c, *use, width, height, 1, least, *mesh), expected) == 0);
        }
    }
}

TEST_CASE("Wireframe is lines over a darker picture, in every tier alike, and the background stays") {
    const u32 width = 333, height = 201;
    backend on = open_backend(device::device_kind::cpu, 2);
    chain c(*on.context, *on.queue, {mesh_shape::bumpy_sphere, 900, width, height, 1});
    const std::vector<std::byte> bytes = c.mesh_bytes();
    const auto mesh = on.context->allocate(bytes.size());
    std::memcpy(mesh->data(), bytes.data(), bytes.size());
    scratch_memory scratch(cpu::fragment_scratch_bytes(width, height));
    for (const u32 mode : {0U, 1U}) {
        c.scene.shading = mode;
        c.scene.wireframe = 0;
        const std::vector<u32> plain = c.render(5);
        c.scene.wireframe = 1;
        const std::vector<u32> wired = c.render(5);
        u64 lines = 0, faces = 0;
        for (u32 i = 0; i < width * height; ++i) {
            if (plain[i] == body::background(i % width, i / width, height)) {
                REQUIRE(wired[i] == plain[i]);
                continue;
            }
            const bool line = wired[i] == body::shade_wire(true, plain[i]);
            REQUIRE((line || wired[i] == body::shade_wire(false, plain[i])));
            ++(line ? lines : faces);
        }
        CAPTURE(mode, lines, faces);
        REQUIRE(lines > 2'000);
        REQUIRE(faces > lines);
        for (const char* name : {"baseline", "avx2", "avx512"}) {
            const cpu::entries* use = cpu::find_entries(name);
            if (use == nullptr) continue;
            CAPTURE(name);
            REQUIRE(differences(render_with(c, *use, width, height, 2, scratch, *mesh), wired) == 0);
        }
    }
}

TEST_CASE("Odd sizes: every pixel from 1x1 to 3840x2160 is written, by every tier alike") {
    backend on = open_backend(device::device_kind::cpu, 2);
    const std::array largest = sanitized ? std::array{961U, 541U} : std::array{3840U, 2160U};
    for (const auto& [w, h] : {std::array{1U, 1U}, {7U, 5U}, {64U, 32U}, {65U, 33U}, largest}) {
        chain c(*on.context, *on.queue, {mesh_shape::torus_knots, 5000, w, h, 1});
        const std::vector<u32> picture = c.render(1);
        CAPTURE(w, h);
        REQUIRE(std::ranges::all_of(picture, [](u32 p) { return p >> 24 == 255U; }));
        for (const raster_path path : all_paths) REQUIRE(differences(c.render(1, path), picture) == 0);
    }
}

TEST_CASE("Instances are drawn where their matrices put them") {
    backend on = open_backend(device::device_kind::cpu, 2);
    chain nine(*on.context, *on.queue, {mesh_shape::bumpy_sphere, 2000, 200, 150, 9});
    nine.scene.camera.eye[1] = 3.0F;
    nine.scene.camera.eye[2] = 8.0F;
    nine.scene.shading = 2;
    const std::vector<u32> picture = nine.render(2);
    const triangle_counters c = nine.counters();
    REQUIRE(c.instance_count == 9);
    REQUIRE(c.small + c.large + c.culled == 9 * nine.layout().counts.triangle_count);
    for (const raster_path path : all_paths) REQUIRE(differences(nine.render(2, path), picture) == 0);
    chain one(*on.context, *on.queue, {mesh_shape::bumpy_sphere, 2000, 200, 150, 1});
    one.scene = nine.scene;
    u64 covered_one = 0, covered_nine = 0;
    const std::vector<u32> single = one.render(2);
    for (u64 i = 0; i < picture.size(); ++i) {
        const u32 empty = body::background(static_cast<u32>(i % 200), static_cast<u32>(i / 200), 150);
        covered_one += single[i] != empty, covered_nine += picture[i] != empty;
    }
    REQUIRE(covered_nine > 4 * covered_one);
}

TEST_CASE("Procedural meshes: indices in range, unit normals, at most the requested triangles") {
    backend on = open_backend(device::device_kind::cpu, 2);
    for (const mesh_shape shape : shapes) {
        const mesh_counts counts = procedural_counts(shape, 5000);
        REQUIRE(counts.triangle_count <= 5000);
        REQUIRE(counts.triangle_count > 4000);
        chain c(*on.context, *on.queue, {shape, 5000, 64, 64, 1});
        const std::vector<std::byte> bytes = c.mesh_bytes();
        const mesh_view m = view_mesh(c.layout(), bytes.data());
        REQUIRE(reinterpret_cast<const mesh_header*>(bytes.data())->counts == counts);
        for (u64 i = 0; i < u64{counts.triangle_count} * 3; ++i) REQUIRE(m.indices[i] < counts.vertex_count);
        for (u64 i = 0; i < counts.vertex_count; ++i) {
            const f32* const n = m.vertices[i].normal;
            REQUIRE(std::abs(n[0] * n[0] + n[1] * n[1] + n[2] * n[2] - 1.0F) < 1e-4F);
        }
    }
    REQUIRE_THROWS_AS(procedural_counts(mesh_shape::bumpy_sphere, 1U << 30), config_error);
    REQUIRE_THROWS_AS(mesh_shape_from("teapot"), config_error);
    REQUIRE(mesh_shape_from("torus-knots") == mesh_shape::torus_knots);
}

TEST_CASE("Sharpening does not change flat pictures, strengthens edges, and keeps alpha") {
    backend on = open_backend(device::device_kind::cpu, 2);
    const u32 w = 37, h = 11;
    const auto in = on.context->allocate(w * h * 4), out = on.context->allocate(w * h * 4);
    u32* const pixels = reinterpret_cast<u32*>(in->data());
    const u32* const result = reinterpret_cast<const u32*>(out->data());
    const auto run = [&] {
        sharpen(*on.queue,
                {reinterpret_cast<const u8*>(in->data()), reinterpret_cast<u8*>(out->data()), w, h, 256});
        on.queue->drain();
    };
    for (u32 i = 0; i < w * h; ++i) pixels[i] = 0x40302010U;
    run();
    for (u32 i = 0; i < w * h; ++i) REQUIRE(result[i] == 0x40302010U);
    for (u32 i = 0; i < w * h; ++i) pixels[i] = i % w < 20 ? 0xff646464U : 0xffc8c8c8U;
    run();
    REQUIRE(result[5 * w + 5] == 0xff646464U);
    REQUIRE(result[5 * w + 19] == 0xff434343U);  // 100 + (100 - 400/3) = 66.7
    REQUIRE(result[5 * w + 20] == 0xffe9e9e9U);  // 200 + (200 - 500/3) = 233.3
    REQUIRE_THROWS_AS(sharpen(*on.queue, {nullptr, nullptr, 0, 5, 128}), config_error);
}

TEST_CASE("Arguments that can't work are refused before anything runs") {
    backend on = open_backend(device::device_kind::cpu, 1);
    fragment_stage_args f;
    f.mesh = lay_out_mesh({3, 1, 1, 1});
    f.in.max_instances = 1;
    f.width = 64, f.height = 64;
    REQUIRE_THROWS_AS(fragment_stage(*on.queue, f), config_error);  // no scratch
    f.width = 0;
    REQUIRE_THROWS_AS(fragment_stage(*on.queue, f), config_error);
    f.width = max_extent + 1;
    REQUIRE_THROWS_AS(fragment_stage(*on.queue, f), config_error);
    vertex_stage_args v;
    v.width = v.height = 64;
    v.mesh = lay_out_mesh({3, 1, 1, 1});
    REQUIRE_THROWS_AS(vertex_stage(*on.queue, v), config_error);  // no instance
    v.out.max_instances = ~0U;  // as many triangles: one more than there are numbers for
    REQUIRE_THROWS_AS(vertex_stage(*on.queue, v), config_error);
}
