// Culling by clusters changes nothing that can be seen: the same pictures and the same counters as without
// bounds.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/body/cluster.hpp"
#include "tests/kernels/backend.hpp"
#include "tests/kernels/reference.hpp"

using namespace carousel;
using namespace carousel::kernels;
using namespace carousel::kernels::testing;

namespace {

/// The chain's mesh without bounds.
std::vector<std::byte> unbounded(chain& c) {
    std::vector<std::byte> block = c.mesh_bytes();
    std::memset(block.data() + c.layout().clusters, 0,
                cluster_count(c.layout().counts) * sizeof(cluster_bounds));
    return block;
}

void require_no_difference(const chain_options& options, const std::vector<kernels::scene_state>& scenes) {
    auto& on = tested();
    chain with(*on.context, *on.queue, options), without(*on.context, *on.queue, options);
    without.set_mesh(unbounded(without));
    for (u32 i = 0; i < scenes.size(); ++i) {
        with.scene = without.scene = scenes[i];
        CAPTURE(static_cast<int>(options.shape), options.triangles, options.width, i);
        REQUIRE(differences(with.render(i), without.render(i)) == 0);
        const triangle_counters a = with.counters(), b = without.counters();
        REQUIRE(std::memcmp(&a, &b, sizeof a) == 0);
    }
}

kernels::scene_state seen_from(f32 x, f32 y, f32 z, f32 near = 0.1F) {
    kernels::scene_state s;
    s.shading = 2;  // one colour per triangle, so that the picture shows which triangle is visible
    s.camera.eye[0] = x, s.camera.eye[1] = y, s.camera.eye[2] = z;
    s.camera.near = near;
    return s;
}

/// From near and far, from below the horizon, from within with a near plane that cuts, and with the mesh
/// outside the picture.
std::vector<kernels::scene_state> views() {
    std::vector<kernels::scene_state> all{seen_from(0, 0, 2.6F),
                                          seen_from(1.9F, 0.01F, 0.3F),
                                          seen_from(0.2F, 0, 0.95F, 0.2F),
                                          seen_from(0, 0.1F, 40),
                                          seen_from(0.7F, -2, 0.4F),
                                          seen_from(0.01F, 0.02F, 0.03F),
                                          seen_from(0.9F, 0.05F, 0.6F, 0.01F)};
    kernels::scene_state beside = seen_from(0, 0, 2.6F);
    beside.camera.target[0] = 1.2F;
    all.push_back(beside);
    return all;
}

}  // namespace

TEST_CASE("Every shape gives the same picture and counters with clusters culled and without") {
    CAROUSEL_NEEDS_DEVICE();
    for (const mesh_shape shape : shapes)
        require_no_difference({shape, shape == mesh_shape::quad_stack ? 300U : many_triangles, 320, 200, 1},
                              views());
}

TEST_CASE("Culling does not change pictures of tiny triangles, odd sizes and instances") {
    CAROUSEL_NEEDS_DEVICE();
    require_no_difference({mesh_shape::bumpy_sphere, 200'000, 64, 40, 1},
                          {seen_from(0, 0, 2.6F), seen_from(0, 1, 90), seen_from(0, 0, 3000)});
    require_no_difference({mesh_shape::bumpy_sphere, 7'777, 7, 5, 1}, views());
    require_no_difference({mesh_shape::torus_knots, 5'001, 1, 1, 1}, views());
    require_no_difference({mesh_shape::torus_knots, 3'000, 200, 150, 9},
                          {seen_from(0, 3, 8), seen_from(0.3F, 0.2F, -3)});
}

TEST_CASE("Clusters with an invalid index or coordinate are never hidden and counted as before") {
    CAROUSEL_NEEDS_DEVICE();
    const chain_options options{mesh_shape::bumpy_sphere, 4'000, 160, 100, 1};
    chain with(*on.context, *on.queue, options), without(*on.context, *on.queue, options);
    std::vector<std::byte> block = unbounded(with);
    u32* const indices = reinterpret_cast<u32*>(block.data() + with.layout().indices);
    const auto* const vertices =
        reinterpret_cast<const shaded_vertex*>(block.data() + with.layout().vertices);
    const u32 triangles = with.layout().counts.triangle_count;
    for (u32 t = 100; t < triangles; t += 700) indices[t * 3 + t % 3] = 0x7fffffffU;
    for (u32 v = 50; v < with.layout().counts.vertex_count; v += 400) {
        shaded_vertex odd = vertices[v];
        odd.position[v % 3] = body::float_of(v % 800 < 400 ? 0x7fc00000U : 0x7f800000U);
        store_vertex(block.data(), with.layout(), v, odd);
    }
    // the other way round
    for (u32 t = 300; t < triangles; t += 500) std::swap(indices[t * 3], indices[t * 3 + 1]);
    for (u32 t = 450; t < triangles; t += 600) indices[t * 3 + 2] = indices[t * 3];  // a line
    without.set_mesh(block);
    const auto memory = on.context->allocate(block.size());
    const auto staging = on.context->allocate_host(block.size());
    std::memcpy(staging->data(), block.data(), block.size());
    on.queue->copy(memory->data(), staging->data(), block.size());
    bound_clusters(*on.queue, {with.layout(), memory->data()});
    on.queue->copy(staging->data(), memory->data(), block.size());
    on.queue->drain();
    std::memcpy(block.data(), staging->data(), block.size());
    with.set_mesh(block);
    for (u32 i = 0; i < views().size(); ++i) {
        with.scene = without.scene = views()[i];
        REQUIRE(differences(with.render(i), without.render(i)) == 0);
        const triangle_counters a = with.counters(), b = without.counters();
        REQUIRE(std::memcmp(&a, &b, sizeof a) == 0);
        if (i == 0) REQUIRE(a.bad_index > 0);
        if (i == 0) REQUIRE(a.not_finite > 0);
    }
}

namespace {

/// The triangles that the vertex stage keeps, sorted, and its counters.
struct kept {
    std::vector<u32> small, large;
    triangle_counters counters;
};
kept kept_by(chain& c, const moved_vertices& moved, cluster_bounds* bounds) {
    vertex_stage_args a;
    a.mesh = c.layout(), a.mesh_block = c.mesh_address();
    a.draw = c.draws(), a.models = c.model_matrices();
    a.scene = c.scene, a.width = 320, a.height = 200;
    a.out = c.buffers();
    a.moved = moved, a.moved_bounds = bounds;
    vertex_stage(c.queue(), a);
    kept out;
    out.counters = c.counters();
    const u32 all = c.layout().counts.triangle_count * a.out.max_instances;
    const std::vector<u32> list = c.words(reinterpret_cast<const std::byte*>(a.out.list), all);
    out.small.assign(list.begin(), list.begin() + out.counters.small);
    out.large.assign(list.end() - out.counters.large, list.end());
    std::sort(out.small.begin(), out.small.end());
    std::sort(out.large.begin(), out.large.end());
    return out;
}

}  // namespace

TEST_CASE("a moving mesh loses no triangle by culling whole clusters in its pose") {
    CAROUSEL_NEEDS_DEVICE();
    const chain_options options{mesh_shape::torus_knots, 6000, 320, 200, 2};
    chain c(*on.context, *on.queue, options);
    c.animate(0);
    std::vector<std::byte> block = c.mesh_bytes();
    // As for a mesh that moves: vertex lists without bounds.
    auto* const listed = reinterpret_cast<cluster_bounds*>(block.data() + c.layout().clusters);
    for (u32 i = 0; i < cluster_count(c.layout().counts); ++i)
        listed[i] = {{}, 0, {}, 0, 0, 0, listed[i].first_vertex, listed[i].vertex_count};
    c.set_mesh(block);
    const mesh_view rest = view_mesh(c.layout(), block.data());
    const u32 vertices = rest.counts.vertex_count, clusters = cluster_count(rest.counts);
    const auto positions = on.context->allocate(u64{vertices} * 12 + 4),
               shaded = on.context->allocate(u64{vertices} * 32),
               bounds = on.context->allocate(clusters * sizeof(cluster_bounds));
    const moved_vertices moved{reinterpret_cast<f32*>(positions->data()),
                               reinterpret_cast<shaded_vertex*>(shaded->data())};
    auto* const own = reinterpret_cast<cluster_bounds*>(bounds->data());
    u32 hidden = 0, visible = 0;
    for (const u32 pose : {0U, 1U, 2U, 3U}) {
        // Far from the rest pose: twisted, stretched, moved out of the picture; with a NaN in the last one.
        std::vector<f32> at(u64{vertices} * 3);
        for (u32 i = 0; i < vertices; ++i) {
            const f32* const p = rest.positions + u64{i} * 3;
            const f32 turn = static_cast<f32>(pose) * 1.7F * p[1], s = std::sin(turn), k = std::cos(turn);
            at[3 * i] = k * p[0] - s * p[2] + 0.8F * static_cast<f32>(pose);
            at[3 * i + 1] = p[1] * (1.0F + static_cast<f32>(pose));
            at[3 * i + 2] = s * p[0] + k * p[2];
        }
        if (pose == 3) at[100] = std::nanf("");
        const auto staging = on.context->allocate_host(at.size() * 4);
        std::memcpy(staging->host_data(), at.data(), at.size() * 4);
        on.queue->copy(positions->data(), staging->data(), at.size() * 4);
        on.queue->drain();
        for (const kernels::scene_state& view : views()) {
            c.scene = view;
            const kept without = kept_by(c, moved, nullptr), with = kept_by(c, moved, own);
            CAPTURE(pose);
            REQUIRE(with.small == without.small);
            REQUIRE(with.large == without.large);
            REQUIRE(std::memcmp(&with.counters, &without.counters, sizeof with.counters) == 0);
            const std::vector<u32> words =
                c.words(bounds->data(), clusters * sizeof(cluster_bounds) / sizeof(u32));
            const std::vector<u32> records =
                c.words(reinterpret_cast<const std::byte*>(c.buffers().instances),
                        2 * sizeof(instance_record) / sizeof(u32));
            const body::viewport port = body::make_viewport(320, 200, view.camera.near);
            for (u32 i = 0; i < clusters; ++i) {
                cluster_bounds one;
                std::memcpy(&one, words.data() + u64{i} * 12, sizeof one);
                f32 clip[12];
                std::memcpy(clip, records.data(), sizeof clip);
                (body::cluster_hidden(one, clip, port) ? hidden : visible) += 1;
            }
        }
    }
    CAPTURE(hidden, visible);
    CHECK(hidden > 60);
    CHECK(visible > 200);
}
