// The stages of looks.toml in turn: `carousel bench raster --stages`.
#include <array>

#include "bench/raster.hpp"
#include "bench/stopwatch.hpp"
#include "kernels/looks_chain.hpp"

namespace carousel::bench {
namespace {

constexpr u32 unmeasured_frames = 3;
constexpr u32 shadow_side = 1536;
constexpr f32 shadow_radius = 6.5F;

}  // namespace

cell_result measure_stages(device::context& context, device::queue& queue, const bench_options& o,
                           const kernels::chain_options& scene, const std::function<void(u32)>& at_frame,
                           std::vector<u32>& picture) {
    kernels::looks_chain looks(context, queue, scene, shadow_side, shadow_radius);
    looks.scene_chain().scene.shading = o.shading;
    const auto watch = make_stopwatch(queue);
    constexpr std::size_t stages = 6;
    std::array<std::vector<f64>, stages> ms;
    std::vector<f64> frame, cpu;
    for (u32 k = 0; k < o.frames + unmeasured_frames; ++k) {
        at_frame(k);
        looks.jitter(kernels::body::jitter_at(o.first + k));
        looks.animate(o.first + k);
        queue.drain();
        watch->start();
        looks.vertex();
        watch->lap();
        looks.surface();
        watch->lap();
        looks.shadow();
        watch->lap();
        looks.light();
        watch->lap();
        looks.taa();
        watch->lap();
        looks.post();
        watch->lap();
        const auto laps = watch->read();
        if (k < unmeasured_frames) continue;
        f64 sum = 0, cpu_sum = 0;
        for (std::size_t i = 0; i < stages; ++i) {
            ms[i].push_back(laps[i].ms);
            sum += laps[i].ms, cpu_sum += laps[i].cpu_ms;
        }
        frame.push_back(sum), cpu.push_back(cpu_sum);
    }
    cell_result r;
    r.size = {scene.width, scene.height};
    r.triangles = looks.scene_chain().layout().counts.triangle_count;
    r.vertices = looks.scene_chain().layout().counts.vertex_count;
    r.counters = looks.scene_chain().counters();
    r.staged = true;
    r.vertex = quantiles_of(ms[0]), r.fragment = quantiles_of(ms[1]), r.shadow = quantiles_of(ms[2]);
    r.light = quantiles_of(ms[3]), r.taa = quantiles_of(ms[4]), r.post = quantiles_of(ms[5]);
    r.frame = quantiles_of(frame);
    r.cpu_timed = !o.cuda;
    if (r.cpu_timed) r.cpu = quantiles_of(cpu);
    looks.forget();
    looks.jitter({});
    looks.animate(o.first);
    looks.vertex(), looks.surface(), looks.shadow(), looks.light(), looks.taa(), looks.post();
    picture = looks.picture();
    return r;
}

}  // namespace carousel::bench
