#pragma once
// Views of the renderer's shapes as small grey pictures, to train and test a classifier. View n is one
// picture, computed only from n: its class is n mod 6; position, light and rotation are derived from n. The
// network is trained on the views from first_training_view on; lower views are not used for training.

#include <array>
#include <memory>

#include "frame/frame_format.hpp"
#include "kernels/kernels.hpp"
#include "kernels/shape_net.hpp"

namespace carousel::stages {

/// The classes, in order. quad-stack-front-first gives the same pictures as quad-stack, so it is not a
/// separate class.
inline constexpr std::array<kernels::mesh_shape, kernels::net_classes> view_classes{
    kernels::mesh_shape::bumpy_sphere,  kernels::mesh_shape::fractal_terrain,
    kernels::mesh_shape::torus_knots,   kernels::mesh_shape::quad_stack,
    kernels::mesh_shape::triangle_soup, kernels::mesh_shape::long_slivers};
[[nodiscard]] constexpr u32 class_of_view(u64 view) noexcept {
    return static_cast<u32>(view % view_classes.size());
}
inline constexpr u64 first_training_view = u64{1} << 40U;

/// Renders on a CPU queue. All enqueued work uses the renderer's own memory: use one queue at a time.
class view_renderer {
public:
    /// Creates the meshes, and waits until they are complete. Throws device_error.
    view_renderer(device::context& context, device::queue& queue);
    /// Enqueues one view. `grey`: u8[side][side], which must stay valid until the queue has executed this
    /// work.
    void render(device::queue& queue, u64 view, u8* grey);

private:
    struct shape {
        kernels::mesh_layout layout;
        std::unique_ptr<device::mapping> mesh, scene, triangles;
        ring::frame_format scene_format, triangles_format;
    };
    std::array<shape, kernels::net_classes> shapes_;
    std::unique_ptr<device::mapping> color_, scratch_;
};

}  // namespace carousel::stages
