// Case 6 for what cpu_test.cpp leaves out: every shading and path, several instances, clipped triangles; by
// every instruction set that this processor has, and by one and three threads.
#include <array>
#include <cstdio>

#include "device/cpu/pool.hpp"
#include "kernels/cpu/entries.hpp"
#include "tests/kernels/backend.hpp"
#include "tests/kernels/block_hash_reference.hpp"
#include "tests/kernels/reference.hpp"

using namespace carousel;
using namespace carousel::kernels;
using namespace carousel::kernels::testing;

namespace {

constexpr u32 width = 213, height = 97;  // no multiple of a tile or a vector

/// Frame 3 of `c`'s scene by one instruction set.
std::vector<u32> render_by(chain& c, const std::vector<std::byte>& mesh, u32 instances,
                           const cpu::entries& use, u32 threads, raster_path path) {
    device::cpu::pool pool(threads);
    std::vector<u32> picture(u64{width} * height);
    static scratch_memory scratch(cpu::fragment_scratch_bytes(width, height));  // large: once
    const draw_record draw{instances, {}};
    std::vector<f32> models(u64{instances} * 16);
    for (u32 i = 0; i < instances; ++i)
        body::model_matrix(3, c.scene.spin, i, instances, 2.4F, models.data() + u64{i} * 16);
    cpu::run_vertex_stage(
        pool, {c.layout(), mesh.data(), &draw, models.data(), c.scene, width, height, c.buffers()}, use);
    cpu::run_fragment_stage(pool,
                            {c.layout(), mesh.data(), c.buffers(), c.scene, width, height,
                             reinterpret_cast<u8*>(picture.data()), scratch.data(), scratch.size(), path},
                            use);
    return picture;
}

}  // namespace

TEST_CASE("Instruction sets and threads agree on every shading, with clipping and overdraw") {
    backend on = open_backend(device::device_kind::cpu, 2);
    struct scene_case {
        mesh_shape shape;
        u32 triangles, instances;
        f32 eye_z;
    };
    for (const scene_case& at : {scene_case{mesh_shape::bumpy_sphere, 3'000, 5, 6.0F},
                                 {mesh_shape::torus_knots, 4'000, 1, 0.9F},
                                 {mesh_shape::fractal_terrain, 4'000, 2, 1.2F},
                                 {mesh_shape::triangle_soup, 500, 1, 0.5F},
                                 {mesh_shape::quad_stack, 12, 1, 2.6F},
                                 {mesh_shape::long_slivers, 500, 1, 2.6F}}) {
        chain c(*on.context, *on.queue, {at.shape, at.triangles, width, height, at.instances});
        const std::vector<std::byte> mesh = c.mesh_bytes();
        c.scene.camera.eye[2] = at.eye_z;
        for (const u32 mode : {0U, 1U, 2U, 3U}) {
            c.scene.shading = mode;
            c.scene.wireframe = mode == 1 ? 1 : 0;
            const std::vector<u32> expected = c.render(3);
            for (const char* name : {"baseline", "avx2", "avx512"}) {
                const cpu::entries* const use = cpu::find_entries(name);
                if (use == nullptr) continue;
                for (const u32 threads : {1U, 3U}) {
                    CAPTURE(name, threads, mode, static_cast<int>(at.shape));
                    REQUIRE(
                        differences(render_by(c, mesh, at.instances, *use, threads, raster_path::automatic),
                                    expected) == 0);
                }
                for (const raster_path path : all_paths) {
                    CAPTURE(name, static_cast<int>(path), mode, static_cast<int>(at.shape));
                    REQUIRE(differences(render_by(c, mesh, at.instances, *use, 2, path), expected) == 0);
                }
            }
        }
        c.scene.shading = c.scene.wireframe = 0;
        std::vector<u32> distinct = c.render(3);
        std::sort(distinct.begin(), distinct.end());
        // there is something in the picture
        REQUIRE(std::unique(distinct.begin(), distinct.end()) - distinct.begin() > 20);
    }
    for (const char* name : {"avx2", "avx512"})
        if (cpu::find_entries(name) == nullptr)
            std::printf("%s: not on this processor, not compared\n", name);
}

TEST_CASE("All instruction sets and thread counts give the same hash of a plane, for any alignment") {
    std::vector<std::byte> bytes(700'003);
    for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<std::byte>(k * k >> 3U);
    for (const u64 first : {0U, 1U, 8U}) {
        const std::span<const std::byte> part = std::span<const std::byte>(bytes).subspan(first);
        const u64 expected = carousel::test::reference_hash(part);
        for (const char* name : {"baseline", "avx2", "avx512"}) {
            const cpu::entries* const use = cpu::find_entries(name);
            if (use == nullptr) continue;
            for (const u32 threads : {1U, 3U}) {
                device::cpu::pool pool(threads);
                u64 value = 0;
                cpu::run_hash_plane(pool, {part.data(), part.size(), 1, 0, nullptr, 0, &value}, *use);
                CAPTURE(name, threads, first);
                CHECK(value == expected);
            }
        }
    }
}
