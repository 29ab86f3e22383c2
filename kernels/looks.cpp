// Checks the arguments of looks.hpp and forwards them to the queue's backend.
#include "kernels/looks.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"
#include "kernels/body/post.hpp"
#include "kernels/cpu/shade_entries.hpp"
#include "kernels/cuda/entries.hpp"
#include "kernels/kernels.hpp"

namespace carousel::kernels {
namespace {

void check_size(const char* what, u32 width, u32 height) {
    if (width == 0 || height == 0 || width > max_extent || height > max_extent)
        throw config_error(
            fmt::format("{}: a picture of {}x{} pixels can't be processed; each side must have 1 to {}", what,
                        width, height, max_extent));
}

}  // namespace

void light(device::queue& q, const light_args& args) {
    check_size("light", args.width, args.height);
    if (args.sky == nullptr || args.radiance == nullptr || args.in.albedo == nullptr ||
        args.in.depth == nullptr || (args.occlusion_radius > 0.0F && args.scratch == nullptr))
        throw config_error("light: a plane, the sky or the scratch memory is missing");
    if ((args.in.coverage == nullptr) != (args.in.samples == nullptr))
        throw config_error("light: of the planes coverage and samples only one was given");
    if (args.shadow != nullptr && (args.shadow_side < 16 || args.shadow_side > max_extent))
        throw config_error(
            fmt::format("light: a shadow map of {} pixels per side can't be used; expected 16 to {}",
                        args.shadow_side, max_extent));
    if (args.light_count > max_lights || (args.light_count > 0 && args.lights == nullptr))
        throw config_error(
            fmt::format("light: {} lights can't be used; expected at most {}", args.light_count, max_lights));
#if CAROUSEL_WITH_CUDA
    if (q.kind() == device::device_kind::cuda) return cuda::light(q, args);
#endif
    cpu::light(q, args);
}

void taa(device::queue& q, const taa_args& args) {
    check_size("taa", args.width, args.height);
    for (const void* plane : {static_cast<const void*>(args.radiance), static_cast<const void*>(args.depth),
                              static_cast<const void*>(args.history), static_cast<const void*>(args.before),
                              static_cast<const void*>(args.out), static_cast<const void*>(args.next),
                              static_cast<const void*>(args.after)})
        if (plane == nullptr) throw config_error("taa: a plane is missing");
    const mesh_motion& m = args.motion;
    if (m.triangle != nullptr && (m.draw == nullptr || m.models == nullptr || m.before == nullptr ||
                                  m.after == nullptr || m.copies == 0 || m.mesh.counts.triangle_count == 0))
        throw config_error("taa: a plane of the moving copies is missing, or there are none");
    if (const vertex_motion& v = m.vertices; v.block != nullptr) {
        for (const pose_planes& pose : {v.now, v.before, v.after})
            if (m.mesh_block == nullptr || pose.matrices == nullptr || pose.weights == nullptr)
                throw config_error("taa: the mesh, or a plane of the pose is missing");
    }
    if (args.frames == 0) throw config_error("taa: the number of frames is 0; expected at least 1");
#if CAROUSEL_WITH_CUDA
    if (q.kind() == device::device_kind::cuda) return cuda::taa(q, args);
#endif
    cpu::taa(q, args);
}

u64 post_scratch_bytes(u32 width, u32 height) {
    check_size("post", width, height);
    return body::post_bytes(width, height);
}

void post(device::queue& q, const post_args& args) {
    check_size("post", args.width, args.height);
    if (args.scratch == nullptr) throw config_error("post: the scratch memory is missing");
    if (const meter_args& m = args.meter;
        m.before != nullptr && (m.after == nullptr || !(m.frames >= 1.0F) || !(m.key > 0.0F)))
        throw config_error("post: the state of the exposure is missing, or its settings are invalid");
#if CAROUSEL_WITH_CUDA
    if (q.kind() == device::device_kind::cuda) return cuda::post(q, args);
#endif
    cpu::post(q, args);
}

void compare(device::queue& q, const compare_args& args) {
    check_size("compare", args.width, args.height);
#if CAROUSEL_WITH_CUDA
    if (q.kind() == device::device_kind::cuda) return cuda::compare(q, args);
#endif
    cpu::compare(q, args);
}

}  // namespace carousel::kernels
