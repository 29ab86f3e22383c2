// Culling by clusters changes nothing that can be seen: the same pictures and the same counters as without
// bounds.
#include <array>

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
