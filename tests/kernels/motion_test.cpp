// The values of animation channels, poses and moved vertices, against formulas in double precision.
#include <cmath>

#include "kernels/body/move.hpp"
#include "kernels/body/pose.hpp"
#include "tests/kernels/motion_block.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::kernels;
using namespace carousel::kernels::body;
using namespace carousel::kernels::testing;

namespace {

/// The value of a channel, whose keys are the only ones.
std::vector<f64> value_of(key_interpolation between, u32 width, const std::vector<f32>& times,
                          const std::vector<f32>& values, f64 time) {
    motion_parts m;
    m.nodes.emplace_back();
    m.nodes[0].channel[0] = m.channel(between, width, times, values);
    const std::vector<std::byte> block = m.block();
    std::vector<f64> out(width, -1.0);
    property_of(view_motion(m.layout(), block.data()), 0, out.data(), width, time, out.data());
    return out;
}

/// The local matrix of a node with this rotation channel.
std::vector<f64> turned(key_interpolation between, const std::vector<f32>& times,
                        const std::vector<f32>& values, f64 time) {
    motion_parts m;
    m.nodes.emplace_back();
    m.nodes[0].channel[1] = m.channel(between, 4, times, values);
    const std::vector<std::byte> block = m.block();
    std::vector<f64> out(12);
    local_matrix(view_motion(m.layout(), block.data()), 0, time, out.data());
    return out;
}

}  // namespace

TEST_CASE("the arc tangent has an error of at most 3e-16") {
    for (u32 i = 0; i <= 100'000; ++i) {
        const f64 x = i / 100'000.0;
        REQUIRE(std::abs(arc_tangent(x) - std::atan(x)) <= 3e-16);
    }
}

TEST_CASE("step, linear and cubic channels are constant outside their times") {
    using enum key_interpolation;
    const std::vector<f32> times{1, 3}, values{10, 20, 30, 40};
    CHECK(value_of(step, 2, times, values, 2.9) == std::vector<f64>{10, 20});
    CHECK(value_of(step, 2, times, values, 3) == std::vector<f64>{30, 40});
    CHECK(value_of(linear, 2, times, values, 0) == std::vector<f64>{10, 20});
    CHECK(value_of(linear, 2, times, values, 1.5) == std::vector<f64>{15, 25});
    CHECK(value_of(linear, 2, times, values, 9) == std::vector<f64>{30, 40});
    const std::vector<f32> cubic_values{5, 10, 4, -4, 20, 5};  // in-tangent, value, out-tangent
    CHECK(value_of(cubic, 1, times, cubic_values, 0) == std::vector<f64>{10});
    CHECK(value_of(cubic, 1, times, cubic_values, 9) == std::vector<f64>{20});
    // halfway: (10 + 20) / 2 + span * (4 - (-4)) / 8
    CHECK(value_of(cubic, 1, times, cubic_values, 2) == std::vector<f64>{17});
    CHECK(value_of(linear, 1, {2}, {7}, 5) == std::vector<f64>{7});
    CHECK(value_of(linear, 1, {}, {}, 5) == std::vector<f64>{-1});  // no key: the node's own value
}

TEST_CASE("rotations are interpolated along the shorter arc, and their matrix has no scale") {
    using enum key_interpolation;
    const f32 half = std::sqrt(0.5F);
    // From none to a quarter turn about y, written with the opposite sign.
    for (const f64 s : {0.0, 0.1, 0.5, 0.9, 1.0}) {
        const std::vector<f64> m = turned(linear, {0, 1}, {0, 0, 0, 1, 0, -half, 0, -half}, s);
        CHECK(std::abs(m[2] - std::sin(s * std::acos(0.0))) < 1e-7);
        CHECK(std::abs(m[0] - std::cos(s * std::acos(0.0))) < 1e-7);
    }
    // Nearly equal rotations
    const std::vector<f64> near = turned(linear, {0, 1}, {0, 0, 0, 1, 1e-7F, 0, 0, 1}, 0.5);
    CHECK(std::abs(near[9] - 1e-7) < 1e-12);
    const std::vector<f64> m = turned(
        cubic, {0, 1}, {0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, half, 0, half, 0, 0, 0, 0}, 0.5);
    CHECK(std::abs(m[0] * m[0] + m[8] * m[8] - 1) < 1e-12);
    CHECK(turned(linear, {0}, {0, 0, 0, 0}, 0)[0] == 1);  // without a direction: no rotation
}

TEST_CASE("a moved vertex has its morph targets, then the weighted matrices of its joints") {
    motion_parts m;
    m.nodes.resize(3);
    m.nodes[1].parent = 0;
    m.nodes[2].parent = 1;
    m.nodes[0].values[0] = 10;                                               // translation
    m.nodes[1].values[7] = m.nodes[1].values[8] = m.nodes[1].values[9] = 2;  // scale
    m.nodes[2].has_matrix = 1;
    const f64 mirror[12] = {-1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3};
    std::copy_n(mirror, 12, m.nodes[2].values);
    m.matrices.resize(2);
    m.matrices[0].node = 1;
    m.matrices[1].node = 2;
    m.matrices[1].inner[3] = 1;
    m.influences = {{0, 0.25F}, {1, 0.75F}};
    m.weights = {{no_motion_index, 0, 5, 0}, {no_motion_index, 0, 0.5F, 0}};
    m.deltas = {{{0, 4, 0}, {0, 0, 0}, 0, 0}};
    moving_vertex v;
    v.at = {{1, 0, 0}, {0.6F, 0, 0.8F}, {0.25F, 0.75F}};
    v.influence_count = 2;
    v.delta_count = 1;
    v.first_weight = 1;
    m.vertices = {v};
    const std::vector<std::byte> block = m.block();
    const motion_view view = view_motion(m.layout(), block.data());
    std::vector<f64> locals(36);
    for (u32 i = 0; i < 3; ++i) local_matrix(view, i, 0, &locals[std::size_t{12} * i]);
    std::vector<f32> matrices(24), weights{pose_weight(view, 0, 0), pose_weight(view, 1, 0)};
    for (u32 i = 0; i < 2; ++i) pose_matrix(view, locals.data(), i, &matrices[std::size_t{12} * i]);
    // matrices: 2p + (10, 0, 0), and 2 (-(x + 1), y, z + 3) + (10, 0, 0)
    const shaded_vertex moved = moved_vertex(view, matrices.data(), weights.data(), 0);
    CHECK(moved.position[0] == 0.25F * 12 + 0.75F * 6);
    CHECK(moved.position[1] == 4);
    CHECK(moved.position[2] == 0.75F * 6);
    CHECK(moved.texture[1] == 0.75F);
    // The blended matrix has the diagonal (-1, 2, 2), so its inverse transpose turns x around.
    const f64 length = std::sqrt(0.6 * 0.6 + 0.4 * 0.4);
    CHECK(std::abs(moved.normal[0] + 0.6 / length) < 1e-6);
    CHECK(std::abs(moved.normal[2] - 0.4 / length) < 1e-6);
}
