// The bounds of clusters themselves, on the host: what is hidden is culled triangle by triangle, for any
// matrix; and some is hidden. Their lists: the same corners as the mesh's indices.
#include <algorithm>
#include <array>

#include "kernels/body/cluster.hpp"
#include "kernels/body/setup.hpp"
#include "tests/kernels/backend.hpp"
#include "tests/kernels/reference.hpp"

using namespace carousel;
using namespace carousel::kernels;
using namespace carousel::kernels::testing;

namespace {

struct found {
    u64 clusters = 0, hidden = 0, inside = 0, culled = 0, all = 0;
};

/// Every triangle of every hidden cluster must be one that classify() culls, and no vertex of one that lies
/// inside may have an outcode.
found examine(const mesh_view& mesh, const f32* clip, const body::viewport& view) {
    found f;
    for (u32 c = 0; c < cluster_count(mesh.counts); ++c) {
        const bool hidden = body::cluster_hidden(mesh.clusters[c], clip, view);
        const bool inside = body::cluster_inside(mesh.clusters[c], clip, view);
        ++f.clusters, f.hidden += hidden, f.inside += inside;
        for (u32 t = c * cluster_triangles;
             t < std::min((c + 1) * cluster_triangles, mesh.counts.triangle_count); ++t) {
            screen_vertex v[3];
            for (u32 k = 0; k < 3; ++k) {
                const f32* const p = mesh.positions + u64{mesh.indices[t * 3 + k]} * 3;
                v[k] = body::transform_vertex(clip, {p[0], p[1], p[2]}, view);
                if (inside && v[k].outcode != 0) {
                    CAPTURE(c, t, v[k].outcode);
                    REQUIRE(v[k].outcode == 0);
                }
            }
            const bool culled =
                body::classify(v[0], v[1], v[2], view.width, view.height) == body::triangle_class::culled;
            f.culled += culled, ++f.all;
            if (hidden && !culled) {
                CAPTURE(c, t);
                REQUIRE(culled);
            }
        }
    }
    return f;
}

}  // namespace

TEST_CASE("A hidden cluster has only culled triangles under turned, mirrored and scaled matrices") {
    backend on = open_backend(device::device_kind::cpu, 2);
    std::mt19937 random(11);
    const auto unit = [&] { return static_cast<f32>(random_in(random, -1000, 1000)) / 1000.0F; };
    for (const mesh_shape shape : {mesh_shape::bumpy_sphere, mesh_shape::fractal_terrain,
                                   mesh_shape::torus_knots, mesh_shape::triangle_soup}) {
        chain c(*on.context, *on.queue, {shape, 6000, 64, 64, 1});
        const std::vector<std::byte> block = c.mesh_bytes();
        const mesh_view mesh = view_mesh(c.layout(), block.data());
        u64 hidden = 0, inside = 0;
        for (u32 round = 0; round < 60; ++round) {
            const u32 width = 1U << random_in(random, 0, 12), height = 1U << random_in(random, 0, 12);
            const body::viewport view = body::make_viewport(width, height, round % 4 == 0 ? 0.5F : 0.05F);
            const f32 scale = std::array{1.0F, 1.0F, 30.0F, 0.01F, 1e-4F, 1e6F}[round % 6],
                      offset = round % 5 == 0 ? 1000.0F : 2.0F;
            f32 clip[12];
            for (u32 k = 0; k < 12; ++k) clip[k] = unit() * (k % 4 == 3 ? offset : scale);
            if (round % 3 != 0) clip[11] = std::abs(clip[11]) + 1.7F * scale;  // mostly before the eye
            const found f = examine(mesh, clip, view);
            hidden += f.hidden, inside += f.inside;
        }
        CAPTURE(static_cast<int>(shape));
        REQUIRE(hidden > 100);
        REQUIRE(inside > 100);
    }
}

TEST_CASE("More than a fifth of a sphere's clusters are hidden from outside, all when looking away") {
    backend on = open_backend(device::device_kind::cpu, 2);
    chain c(*on.context, *on.queue, {mesh_shape::bumpy_sphere, 300'000, 1920, 1080, 1});
    const std::vector<std::byte> block = c.mesh_bytes();
    const body::matrix34 clip = body::view_projection(c.scene.camera, 1920, 1080);
    const found f =
        examine(view_mesh(c.layout(), block.data()), clip.m, body::make_viewport(1920, 1080, 0.1F));
    CAPTURE(f.hidden, f.clusters, f.culled, f.all);
    REQUIRE(f.hidden * 5 > f.clusters);
    REQUIRE(f.inside * 10 > f.clusters * 8);  // only its top and bottom reach beyond the picture
    kernels::scene_state aside = c.scene;
    aside.camera.target[0] = 50;
    const body::matrix34 away = body::view_projection(aside.camera, 1920, 1080);
    REQUIRE(
        examine(view_mesh(c.layout(), block.data()), away.m, body::make_viewport(1920, 1080, 0.1F)).hidden ==
        f.clusters);
}

TEST_CASE("A cluster's list has each of its vertices once, ascending, and its triangles' corners") {
    backend on = open_backend(device::device_kind::cpu, 2);
    for (const mesh_shape shape : shapes) {
        chain c(*on.context, *on.queue, {shape, 7000, 64, 64, 1});
        const std::vector<std::byte> block = c.mesh_bytes();
        const mesh_view mesh = view_mesh(c.layout(), block.data());
        u64 listed = 0;
        for (u32 k = 0; k < cluster_count(mesh.counts); ++k) {
            const cluster_bounds& b = mesh.clusters[k];
            const u16* const numbers = mesh.local_vertices + u64{k} * cluster_vertices;
            for (u32 i = 1; i < b.vertex_count; ++i) REQUIRE(numbers[i - 1] < numbers[i]);
            for (u32 i = b.vertex_count; i < cluster_vertices; ++i) REQUIRE(numbers[i] == 0);
            std::vector<u32> used(cluster_vertices);
            for (u32 t = k * cluster_triangles;
                 b.vertex_count > 0 && t < std::min((k + 1) * cluster_triangles, mesh.counts.triangle_count);
                 ++t, ++listed) {
                for (u32 n = 0; n < 3; ++n) {
                    const u32 place = mesh.local_corners[t] >> (8 * n) & 255U;
                    REQUIRE(place < b.vertex_count);
                    REQUIRE(b.first_vertex + numbers[place] == mesh.indices[t * 3 + n]);
                    used[place] = 1;
                }
            }
            REQUIRE(std::count(used.begin(), used.end(), 1U) == b.vertex_count);
        }
        // triangles that share no vertex: 384 vertices per cluster (264 in the last cluster) are more than a
        // list holds
        const bool apart = shape == mesh_shape::triangle_soup || shape == mesh_shape::long_slivers;
        REQUIRE(listed == (apart ? 0 : mesh.counts.triangle_count));
    }
}

TEST_CASE("A cluster with an index out of range, or with vertices too far apart, has no list") {
    backend on = open_backend(device::device_kind::cpu, 2);
    chain c(*on.context, *on.queue, {mesh_shape::bumpy_sphere, 300'000, 64, 64, 1});
    std::vector<std::byte> block = c.mesh_bytes();
    u32* const indices = reinterpret_cast<u32*>(block.data() + c.layout().indices);
    const mesh_view mesh = view_mesh(c.layout(), block.data());
    std::vector<u16> numbers(cluster_vertices);
    std::vector<u32> corners(cluster_triangles);
    const auto list = [&](u32 number) {
        cluster_bounds b{};
        body::list_cluster(mesh, number, b, numbers.data(), corners.data());
        return b.vertex_count;
    };
    REQUIRE(list(3) > 60);
    const u32 kept = indices[3 * cluster_triangles * 3 + 5];
    indices[3 * cluster_triangles * 3 + 5] = mesh.counts.vertex_count;
    REQUIRE(list(3) == 0);
    // in range, and 65,536 or more from the first
    indices[3 * cluster_triangles * 3 + 5] = mesh.counts.vertex_count - 1;
    REQUIRE(list(3) == 0);
    indices[3 * cluster_triangles * 3 + 5] = kept;
    REQUIRE(list(3) > 60);
}
