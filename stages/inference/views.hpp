#pragma once
// Views of the renderer's shapes as small grey pictures, to train and test a classifier. View n is one
// picture, computed only from n: its class is n mod 6; position, light and rotation are derived from n. The
// network is trained on the views from first_training_view on; lower views are not used for training.

#include <carousel/stage.hpp>

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

// The formats that the stages of pipelines/inference.toml pass to each other. Frame n contains the views b*n
// to b*n + b - 1, where b is the number of views per batch. A batch size of 0 matches any number of views
// (for require_format).

[[nodiscard]] inline ring::frame_format views_format(u64 batch) {
    return {
        "carousel.views", {{"grey", ring::element::u8_, {batch, kernels::net_side, kernels::net_side}}}, {}};
}
[[nodiscard]] inline ring::frame_format classes_format(u64 batch) {
    return {"carousel.classes",
            {{"class", ring::element::u32_, {batch}},
             {"score", ring::element::i32_, {batch, kernels::net_classes}}},
            {}};
}

// The source: views of the renderer's shapes, `batch` of them per frame. Runs on the CPU. Output:
// carousel.views. Settings: batch [8].

class view_source : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override {
        require_no_inputs(with);
        batch_ = static_cast<u64>(with.settings->integer("batch", 8, 1, 1024));
        return {.outputs = {views_format(batch_)}, .device = runs_on::cpu};
    }
    void prepare(environment& env) override {
        renderer_ = std::make_unique<view_renderer>(env.context(), env.queue());
    }
    void process(frame& f) override {
        u8* const grey = f.output().plane<u8>("grey").data();
        for (u64 k = 0; k < batch_; ++k)
            renderer_->render(f.queue(), f.frame_number() * batch_ + k, grey + k * kernels::net_inputs);
    }

private:
    u64 batch_ = 0;
    std::unique_ptr<view_renderer> renderer_;  ///< one for all lanes, because the frames of one queue run in
                                               ///< order
};

}  // namespace carousel::stages
