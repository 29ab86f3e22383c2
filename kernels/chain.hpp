#pragma once
// A complete render chain on one device without rings: mesh, scene, triangles and picture, each in its own
// memory. For the benchmark and the tests. Threading: to be used only by the thread that enqueues on the
// queue. Throws the errors of kernels.hpp and of device::context.

#include <memory>
#include <vector>

#include "device/backend.hpp"
#include "kernels/kernels.hpp"

namespace carousel::kernels {

struct chain_options {
    mesh_shape shape = mesh_shape::bumpy_sphere;
    u32 triangles = 10'000;
    u32 width = 320, height = 200;
    u32 instances = 1;
    arrangement stand = arrangement::grid;
    f32 spacing = 2.4F;
    u32 samples = 1;  ///< per pixel; 4 only for looks_chain
};

class chain {
public:
    chain(device::context& context, device::queue& queue, const chain_options& options)
        : chain(context, queue, options, lay_out_mesh(procedural_counts(options.shape, options.triangles))) {
        generate_mesh(queue_, {options.shape, options.triangles, mesh_->data()});
    }

    /// Use this constructor for a mesh that the caller provides by set_mesh().
    chain(device::context& context, device::queue& queue, const chain_options& options,
          const mesh_layout& layout)
        : context_(context), queue_(queue), options_(options), layout_(layout) {
        const u64 i = options.instances;
        mesh_ = context.allocate(layout.bytes);
        draw_ = context.allocate(sizeof(draw_record));
        models_ = context.allocate(i * 64);
        counters_ = context.allocate(sizeof(triangle_counters));
        records_ = context.allocate(i * sizeof(instance_record));
        list_ = context.allocate(i * layout.counts.triangle_count * 4);
        color_ = context.allocate(u64{options.width} * options.height * 4);
        scratch_ = context.allocate(
            fragment_scratch_bytes(queue.kind(), options.width, options.height, 0, options.samples));
    }

    void set_mesh(const std::vector<std::byte>& block) { upload(mesh_->data(), block.data(), block.size()); }
    void set_triangles(const std::vector<u32>& list, const triangle_counters& counters) {
        upload(list_->data(), list.data(), list.size() * 4);
        upload(counters_->data(), &counters, sizeof counters);
    }
    void set_instances(const std::vector<instance_record>& records) {
        upload(records_->data(), records.data(), records.size() * sizeof(instance_record));
    }

    void animate(u64 frame_number) {
        animate_instances(queue_, {frame_number, scene, options_.instances, options_.spacing,
                                   reinterpret_cast<draw_record*>(draw_->data()),
                                   reinterpret_cast<f32*>(models_->data()), options_.stand});
    }
    void vertex() {
        const u32 scale = options_.samples == 4 ? 2 : 1;
        vertex(scale * options_.width, scale * options_.height);
    }
    void vertex(u32 width, u32 height) { vertex(scene, width, height, buffers()); }
    /// The triangles as another view sees them.
    void vertex(const scene_state& view, u32 width, u32 height, const triangle_buffers& out) {
        vertex_stage(queue_, {layout_, mesh_->data(), reinterpret_cast<const draw_record*>(draw_->data()),
                              reinterpret_cast<const f32*>(models_->data()), view, width, height, out});
    }
    void fragment(raster_path path = raster_path::automatic, const mark& before_resolve = {}) {
        fragment_stage(queue_, {layout_, mesh_->data(), buffers(), scene, options_.width, options_.height,
                                reinterpret_cast<u8*>(color_->data()), scratch_->data(), scratch_->bytes(),
                                path, before_resolve});
    }
    /// Renders frame `frame_number` and returns the picture as RGBA words.
    std::vector<u32> render(u64 frame_number = 0, raster_path path = raster_path::automatic) {
        animate(frame_number);
        vertex();
        fragment(path);
        return picture();
    }
    std::vector<u32> picture() { return words(color_->data(), u64{options_.width} * options_.height); }
    /// Copies words from the device, after all work that is enqueued.
    std::vector<u32> words(const std::byte* from, u64 count) { return download<u32>(from, count); }
    triangle_counters counters() { return download<triangle_counters>(counters_->data(), 1)[0]; }
    std::vector<std::byte> mesh_bytes() { return download<std::byte>(mesh_->data(), layout_.bytes); }

    [[nodiscard]] triangle_buffers buffers() const {
        return {reinterpret_cast<triangle_counters*>(counters_->data()),
                reinterpret_cast<instance_record*>(records_->data()), reinterpret_cast<u32*>(list_->data()),
                options_.instances};
    }
    [[nodiscard]] const mesh_layout& layout() const { return layout_; }
    [[nodiscard]] const draw_record* draws() const {
        return reinterpret_cast<const draw_record*>(draw_->data());
    }
    [[nodiscard]] const f32* model_matrices() const { return reinterpret_cast<const f32*>(models_->data()); }
    /// The mesh's block on the device.
    [[nodiscard]] const std::byte* mesh_address() const { return mesh_->data(); }
    /// The scratch memory with the contents that fragment_stage() has left in it; on the CPU it begins with
    /// the visibility buffer (cpu/entries.hpp).
    [[nodiscard]] const device::mapping& scratch() const { return *scratch_; }
    /// f32[instances][16] as computed by animate(), copied from the device.
    [[nodiscard]] std::vector<f32> models() {
        return download<f32>(models_->data(), u64{options_.instances} * 16);
    }
    [[nodiscard]] device::queue& queue() { return queue_; }

    scene_state scene;

private:
    void upload(std::byte* to, const void* from, u64 bytes) {
        const auto staging = context_.allocate_host(bytes);
        __builtin_memcpy(staging->data(), from, bytes);
        queue_.copy(to, staging->data(), bytes);
        queue_.drain();
    }
    template <typename T>
    std::vector<T> download(const std::byte* from, u64 count) {
        const auto staging = context_.allocate_host(count * sizeof(T));
        queue_.copy(staging->data(), from, count * sizeof(T));
        queue_.drain();
        std::vector<T> out(count);
        __builtin_memcpy(static_cast<void*>(out.data()), staging->data(), count * sizeof(T));
        return out;
    }

    device::context& context_;
    device::queue& queue_;
    chain_options options_;
    mesh_layout layout_;
    std::unique_ptr<device::mapping> mesh_, draw_, models_, counters_, records_, list_, color_, scratch_;
};

}  // namespace carousel::kernels
