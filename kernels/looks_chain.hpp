#pragma once
// The stages of looks.toml on one device without rings: G-buffer, shadow map, light and picture of a chain,
// each in its own memory; between light and picture, temporal anti-aliasing. For the benchmark and the
// tests. Threading and errors: as chain.hpp.

#include <array>
#include <cstring>
#include <memory>

#include "kernels/body/surface.hpp"
#include "kernels/body/taa.hpp"
#include "kernels/chain.hpp"
#include "kernels/looks.hpp"

namespace carousel::kernels {

class looks_chain {
public:
    /// `shadow_side`, `shadow_radius`: as for the stage shadow. The camera, the light, the floor and the
    /// materials are like those of looks.toml.
    looks_chain(device::context& context, device::queue& queue, const chain_options& options, u32 shadow_side,
                f32 shadow_radius)
        : chain_(context, queue, options), options_(options), side_(shadow_side), radius_(shadow_radius) {
        const u64 pixels = u64{options.width} * options.height, i = options.instances;
        for (auto* plane : {&albedo_, &normal_, &material_, &depth_, &triangle_, &color_})
            *plane = context.allocate(pixels * 4);
        if (options.samples == 4) {
            coverage_ = context.allocate(pixels);
            samples_ = context.allocate(pixels * further_surfaces * layer_words * 4);
        }
        for (auto* block : {&radiance_, &mixed_, &history_[0], &history_[1]})
            *block = context.allocate(pixels * 16);
        for (auto& block : view_) block = context.allocate(12 * sizeof(f32));
        for (auto& block : models_) block = context.allocate(i * 12 * sizeof(f32));
        shadow_ = context.allocate(u64{side_} * side_ * 4);
        light_scratch_ = context.allocate(pixels);
        post_scratch_ = context.allocate(post_scratch_bytes(options.width, options.height));
        shadow_scratch_ = context.allocate(fragment_scratch_bytes(queue.kind(), side_, side_));
        counters_ = context.allocate(sizeof(triangle_counters));
        records_ = context.allocate(i * sizeof(instance_record));
        list_ = context.allocate(i * chain_.layout().counts.triangle_count * 4);
        sky_ = context.allocate(sizeof(environment));
        const auto made = context.allocate_host(sizeof(environment));
        make_environment(*new (made->data()) environment);
        queue.copy(sky_->data(), made->data(), sizeof(environment));
        const u64 state = pixels * 16 + i * 12 * sizeof(f32);
        zeros_ = context.allocate(state);
        const auto staging = context.allocate_host(state);
        std::memset(staging->host_data(), 0, state);
        queue.copy(zeros_->data(), staging->data(), state);
        queue.drain();

        scene_state& s = chain_.scene;
        s.camera.eye[1] = 4.0F, s.camera.eye[2] = 11.8F, s.camera.target[1] = -0.45F, s.camera.fov_y = 0.5F;
        const body::vec3 light = body::unit({0.75F, 0.62F, 0.4F});
        s.light[0] = light.x, s.light[1] = light.y, s.light[2] = light.z;
        s.ambient = 0.6F, s.spin = 0.012F, s.exposure = 0.85F;
        appearance_.materials[0] = {{1.0F, 0.77F, 0.31F}, 0.18F, 1.0F, 0.0F, 0.0F, 0};
        appearance_.materials[1] = {{0.52F, 0.018F, 0.014F}, 0.42F, 0.0F, 1.0F, 0.0F, 0};
        appearance_.materials[2] = {{0.78F, 0.76F, 0.71F}, 0.14F, 0.0F, 0.0F, 0.0F, 0};
        appearance_.materials[3] = {{0.55F, 0.556F, 0.554F}, 0.04F, 1.0F, 0.0F, 0.0F, 0};
        appearance_.materials[4] = {{0.028F, 0.028F, 0.031F}, 0.62F, 0.0F, 0.0F, 0.0F, 0};
        appearance_.material_count = 5;
        appearance_.has_floor = 1, appearance_.floor = -1.25F;
        appearance_.floor_material = {{0.36F, 0.355F, 0.345F}, 0.75F, 0.0F, 0.0F, 0.0F, 0};
    }

    void animate(u64 frame_number) { chain_.animate(frame_number); }
    void vertex() { chain_.vertex(); }
    void surface() {
        fragment_stage_args a;
        a.mesh = chain_.layout(), a.mesh_block = chain_.mesh_address();
        a.in = chain_.buffers(), a.scene = chain_.scene;
        a.width = options_.width, a.height = options_.height;
        a.scratch = chain_.scratch().data(), a.scratch_bytes = chain_.scratch().bytes();
        a.surface = planes(), a.look = appearance_, a.samples = options_.samples;
        fragment_stage(chain_.queue(), a);
    }
    void shadow() {
        scene_state scene = chain_.scene;
        scene.camera = body::light_camera(scene, radius_);
        const triangle_buffers triangles{reinterpret_cast<triangle_counters*>(counters_->data()),
                                         reinterpret_cast<instance_record*>(records_->data()),
                                         reinterpret_cast<u32*>(list_->data()), options_.instances};
        chain_.vertex(scene, side_, side_, triangles);
        fragment_stage_args a;
        a.mesh = chain_.layout(), a.mesh_block = chain_.mesh_address();
        a.in = triangles, a.scene = scene;
        a.width = a.height = side_;
        a.scratch = shadow_scratch_->data(), a.scratch_bytes = shadow_scratch_->bytes();
        a.surface.depth = reinterpret_cast<f32*>(shadow_->data());
        fragment_stage(chain_.queue(), a);
    }
    void light() {
        light_args a;
        a.in = planes();
        a.shadow = reinterpret_cast<const f32*>(shadow_->data());
        a.shadow_side = side_, a.shadow_radius = radius_;
        a.sky = reinterpret_cast<const environment*>(sky_->data());
        a.scene = chain_.scene;
        a.width = options_.width, a.height = options_.height;
        a.sun = 4.4F, a.occlusion_radius = 0.45F, a.fog = 1.0F / 30.0F;
        a.radiance = reinterpret_cast<f32*>(radiance_->data());
        a.scratch = reinterpret_cast<u8*>(light_scratch_->data());
        kernels::light(chain_.queue(), a);
    }
    /// Moves the camera by its offset in the frame (body/taa.hpp).
    void jitter(body::jitter_offset offset) {
        chain_.scene.camera.jitter[0] = offset.x, chain_.scene.camera.jitter[1] = offset.y;
    }
    /// The arguments of taa() for one more frame, whose state is then the previous one.
    [[nodiscard]] taa_args next_taa() {
        const auto at = [](const auto& block) { return reinterpret_cast<f32*>(block->data()); };
        const bool first = mixed_frames_ == 0;
        const u64 now = mixed_frames_++ % 2, before = 1 - now;
        taa_args a;
        a.radiance = radiance(), a.depth = planes().depth;
        a.history = at(first ? zeros_ : history_[before]), a.before = at(first ? zeros_ : view_[before]);
        a.out = at(mixed_), a.next = at(history_[now]), a.after = at(view_[now]);
        a.motion.triangle = planes().triangle;
        a.motion.mesh = chain_.layout(), a.motion.copies = options_.instances;
        a.motion.draw = chain_.draws(), a.motion.models = chain_.model_matrices();
        a.motion.before = at(first ? zeros_ : models_[before]), a.motion.after = at(models_[now]);
        a.scene = chain_.scene;
        a.width = options_.width, a.height = options_.height;
        return a;
    }
    void taa() { kernels::taa(chain_.queue(), next_taa()); }
    /// The next frame is mixed with none.
    void forget() { mixed_frames_ = 0; }
    /// Of what taa() has made.
    void post() {
        post_args a;
        a.radiance = reinterpret_cast<const f32*>(mixed_->data());
        a.color = reinterpret_cast<u8*>(color_->data());
        a.width = options_.width, a.height = options_.height;
        a.exposure = chain_.scene.exposure, a.bloom = 0.07F, a.smooth_edges = false;
        a.scratch = post_scratch_->data();
        kernels::post(chain_.queue(), a);
    }
    std::vector<u32> picture() { return chain_.words(color_->data(), u64{options_.width} * options_.height); }
    [[nodiscard]] chain& scene_chain() { return chain_; }
    /// The result of light().
    [[nodiscard]] const f32* radiance() const { return reinterpret_cast<const f32*>(radiance_->data()); }
    /// The result of taa() and its state: f32[height][width][4] of light, f32[12], f32[instances][12].
    [[nodiscard]] std::array<const device::mapping*, 4> mixed() const {
        const u64 last = (mixed_frames_ + 1) % 2;
        return {mixed_.get(), history_[last].get(), view_[last].get(), models_[last].get()};
    }

private:
    [[nodiscard]] surface_planes planes() const {
        surface_planes p{reinterpret_cast<u32*>(albedo_->data()), reinterpret_cast<u32*>(normal_->data()),
                         reinterpret_cast<u32*>(material_->data()), reinterpret_cast<f32*>(depth_->data())};
        p.triangle = reinterpret_cast<u32*>(triangle_->data());
        if (coverage_ != nullptr) {
            p.coverage = reinterpret_cast<u8*>(coverage_->data());
            p.samples = reinterpret_cast<u32*>(samples_->data());
        }
        return p;
    }

    chain chain_;
    chain_options options_;
    u32 side_;
    f32 radius_;
    surface_look appearance_;
    std::unique_ptr<device::mapping> albedo_, normal_, material_, depth_, color_, radiance_, shadow_, sky_,
        light_scratch_, post_scratch_, shadow_scratch_, counters_, records_, list_, coverage_, samples_,
        triangle_, mixed_, history_[2], view_[2], models_[2], zeros_;
    u64 mixed_frames_ = 0;
};

}  // namespace carousel::kernels
