#include "stages/inference/views.hpp"

#include <cmath>

#include "device/cpu/pool.hpp"
#include "stages/scene/mesh_formats.hpp"

namespace carousel::stages {
namespace {

constexpr u32 rendered_side = 2 * kernels::net_side;
constexpr u32 view_triangles = 600;

/// Returns the k-th pseudo-random number that is derived from a view, by splitmix64.
u64 drawn(u64 view, u64 k) {
    u64 x = view * 64 + k + 0x9E37'79B9'7F4A'7C15;
    x = (x ^ x >> 30U) * 0xBF58'476D'1CE4'E5B9;
    x = (x ^ x >> 27U) * 0x94D0'49BB'1331'11EB;
    return x ^ x >> 31U;
}
/// Returns a value in [low, high); the interval is divided into steps of 2^-24 of its length.
f32 between(f32 low, f32 high, u64 view, u64 k) {
    return low + (high - low) * (static_cast<f32>(drawn(view, k) >> 40U) / static_cast<f32>(1U << 24U));
}

/// Returns the vector of that length in the direction of (x, y, z). The only function used is the square
/// root, which is exact on every machine.
void point(f32* to, f32 x, f32 y, f32 z, f32 length) {
    const f32 by = length / std::sqrt(x * x + y * y + z * z);
    to[0] = x * by, to[1] = y * by, to[2] = z * by;
}

kernels::scene_state scene_of_view(u64 view) {
    kernels::scene_state s;
    point(s.camera.eye, between(-0.4F, 0.9F, view, 0), between(0.1F, 0.9F, view, 1),
          between(0.5F, 1.0F, view, 2), between(2.2F, 3.2F, view, 3));
    point(s.light, between(-0.8F, 0.8F, view, 4), between(0.3F, 1.0F, view, 5), between(0.3F, 1.0F, view, 6),
          1.0F);
    s.ambient = 0.25F;
    s.spin = 0.001F;
    return s;
}

/// Computes the mean brightness of each block of 2 x 2 pixels, in integers.
void make_grey(const u8* color, u8* grey) {
    for (u32 y = 0; y < kernels::net_side; ++y) {
        for (u32 x = 0; x < kernels::net_side; ++x) {
            u32 sum = 0;
            for (u32 k = 0; k < 4; ++k) {
                const u8* const p = color + 4 * ((2 * y + k / 2) * rendered_side + 2 * x + k % 2);
                sum += 77U * p[0] + 150U * p[1] + 29U * p[2];
            }
            grey[y * kernels::net_side + x] = static_cast<u8>(sum / 1024);
        }
    }
}

}  // namespace

view_renderer::view_renderer(device::context& context, device::queue& queue)
    : color_(context.allocate(u64{rendered_side} * rendered_side * 4)),
      scratch_(
          context.allocate(kernels::fragment_scratch_bytes(context.kind(), rendered_side, rendered_side))) {
    for (u32 k = 0; k < view_classes.size(); ++k) {
        shape& s = shapes_[k];
        s.layout = kernels::lay_out_mesh(kernels::procedural_counts(view_classes[k], view_triangles));
        s.mesh = context.allocate(s.layout.bytes);
        s.scene_format = scene_format(s.layout.counts, 1);
        s.triangles_format = triangles_format(s.layout.counts, 1);
        s.scene = context.allocate(s.scene_format.lay_out());
        s.triangles = context.allocate(s.triangles_format.lay_out());
        kernels::generate_mesh(queue, {view_classes[k], view_triangles, s.mesh->data()});
    }
    queue.drain();
}

void view_renderer::render(device::queue& queue, u64 view, u8* grey) {
    const shape& s = shapes_[class_of_view(view)];
    const output_payload scene(s.scene->data(), &s.scene_format),
        out(s.triangles->data(), &s.triangles_format);
    kernels::animate_args animate;
    // The rotation is 0 to 0.8 radians (spin is 0.001), because a quad seen from its back would not be
    // visible.
    animate.frame_number = drawn(view, 7) % 800;
    animate.scene = scene_of_view(view);
    animate.draw = scene.records<kernels::draw_record>("draw");
    animate.models = scene.plane<f32>("models").data();
    kernels::animate_instances(queue, animate);
    kernels::vertex_stage_args vertex;
    vertex.mesh = s.layout;
    vertex.mesh_block = s.mesh->data();
    vertex.draw = animate.draw;
    vertex.models = animate.models;
    vertex.scene = animate.scene;
    vertex.width = vertex.height = rendered_side;
    vertex.out = triangles_in(out, 1);
    kernels::vertex_stage(queue, vertex);
    kernels::fragment_stage_args fragment;
    fragment.mesh = s.layout;
    fragment.mesh_block = s.mesh->data();
    fragment.in = vertex.out;
    fragment.scene = animate.scene;
    fragment.width = fragment.height = rendered_side;
    fragment.color = reinterpret_cast<u8*>(color_->data());
    fragment.scratch = scratch_->data();
    fragment.scratch_bytes = scratch_->bytes();
    kernels::fragment_stage(queue, fragment);
    queue.submit([color = fragment.color, grey](device::cpu::pool&) { make_grey(color, grey); });
}

}  // namespace carousel::stages
