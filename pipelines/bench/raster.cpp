#include "bench/raster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "bench/stopwatch.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "kernels/body/shade.hpp"
#include "kernels/chain.hpp"
#include "kernels/cpu/entries.hpp"
#include "viewer/watch/picture_choice.hpp"

namespace carousel::bench {
namespace {

constexpr u64 copied_bytes = 256ULL << 20;
constexpr u64 report_every_ns = ns_per_s / 5;
constexpr u32 warm_up_frames = 3;

u64 hash_of(const std::vector<u32>& picture) {
    u64 h = 1469598103934665603ULL;  // FNV-1a, one word at a time
    for (const u32 p : picture) h = (h ^ p) * 1099511628211ULL;
    return h;
}

struct samples {
    std::vector<f64> vertex, fragment, frame, raster, resolve, cpu, peer, peer_cpu;
};

/// The renderers of one cell, ready to draw.
class cell {
public:
    cell(device::queue& queue, const bench_options& o, kernels::chain& chain, peer* companion)
        : queue_(queue), options_(o), chain_(chain), peer_(companion), watch_(make_stopwatch(queue)) {}

    samples measure(const std::function<void(u32)>& at_frame) {
        samples s;
        for (u32 k = 0; k < options_.frames + warm_up_frames; ++k) {
            at_frame(k);
            frame(options_.first + k, k < warm_up_frames ? nullptr : &s);
        }
        return s;
    }

private:
    [[nodiscard]] bool gpu() const { return queue_.kind() == device::device_kind::cuda; }

    void frame(u64 frame_number, samples* into) {
        chain_.animate(frame_number);
        queue_.drain();
        if (gpu()) ours(nullptr);
        ours(into);
        if (gpu()) split(into);
        if (peer_ == nullptr) return;
        const std::vector<f32> models = models_of(frame_number);
        if (gpu()) (void)peer_->draw(chain_.scene, models);
        const peer_time time = peer_->draw(chain_.scene, models);
        if (into != nullptr) into->peer.push_back(time.ms), into->peer_cpu.push_back(time.cpu_ms);
    }

    void ours(samples* into) {
        watch_->start();
        chain_.vertex();
        watch_->lap();
        chain_.fragment(path());
        watch_->lap();
        const auto laps = watch_->read();
        if (into == nullptr) return;
        into->vertex.push_back(laps[0].ms);
        into->fragment.push_back(laps[1].ms);
        into->frame.push_back(laps[0].ms + laps[1].ms);
        into->cpu.push_back(laps[0].cpu_ms + laps[1].cpu_ms);
    }

    /// Computes on the host the same bits that animate() computes on the device.
    [[nodiscard]] std::vector<f32> models_of(u64 frame_number) const {
        std::vector<f32> models(u64{options_.instances} * 16);
        for (u32 i = 0; i < options_.instances; ++i)
            kernels::body::model_matrix(frame_number, chain_.scene.spin, i, options_.instances, 2.4F,
                                        models.data() + u64{i} * 16);
        return models;
    }

    /// Runs the fragment stage again with an event in the middle; this is a separate run because the figures
    /// above must not include the cost of that event.
    void split(samples* into) {
        watch_->start();
        chain_.fragment(path(), {[](void* w) { static_cast<stopwatch*>(w)->lap(); }, watch_.get()});
        watch_->lap();
        const auto laps = watch_->read();
        if (into == nullptr || laps.size() != 2) return;
        into->raster.push_back(laps[0].ms);
        into->resolve.push_back(laps[1].ms);
    }

    [[nodiscard]] kernels::raster_path path() const {
        return static_cast<kernels::raster_path>(options_.path);
    }

    device::queue& queue_;
    const bench_options& options_;
    kernels::chain& chain_;
    peer* peer_;
    std::unique_ptr<stopwatch> watch_;
};

cell_result result_of(kernels::chain& chain, const bench_options& o, picture_size size, const samples& s) {
    cell_result r;
    r.size = size;
    r.triangles = chain.layout().counts.triangle_count;
    r.vertices = chain.layout().counts.vertex_count;
    r.counters = chain.counters();
    r.vertex = quantiles_of(s.vertex), r.fragment = quantiles_of(s.fragment), r.frame = quantiles_of(s.frame);
    r.split = !s.raster.empty();
    if (r.split) r.raster = quantiles_of(s.raster), r.resolve = quantiles_of(s.resolve);
    r.cpu_timed = !o.cuda;
    if (r.cpu_timed) r.cpu = quantiles_of(s.cpu);
    r.bytes = bytes_of_frame(chain.layout().counts, o.instances, u64{r.counters.small} + r.counters.large,
                             size.width, size.height);
    r.with_peer = !s.peer.empty();
    if (r.with_peer) {
        r.peer = quantiles_of(s.peer), r.peer_cpu = quantiles_of(s.peer_cpu);
        r.ratio_to_peer = r.frame.median / r.peer.median;
    }
    return r;
}

void use_instruction_set(const std::string& name) {
    if (name.empty()) return;
    if (kernels::cpu::find_entries(name) == nullptr)
        throw device_error(fmt::format("--simd {}: this processor or this build does not support it", name));
    ::setenv("CAROUSEL_SIMD", name.c_str(), 1);
}

}  // namespace

quantiles quantiles_of(std::vector<f64> samples) {
    std::sort(samples.begin(), samples.end());
    const auto at = [&](f64 q) {
        return samples[std::min(samples.size() - 1,
                                static_cast<std::size_t>(q * static_cast<f64>(samples.size())))];
    };
    return {at(0.5), at(0.95)};
}

f64 share_unlike(const std::vector<u32>& ours, const std::vector<u32>& theirs, u32 width, u32 height) {
    constexpr int visible = 16;
    u64 unlike = 0, on_mesh = 0;
    for (u64 i = 0; i < ours.size(); ++i) {
        if (ours[i] ==
            kernels::body::background(static_cast<u32>(i % width), static_cast<u32>(i / width), height))
            continue;
        ++on_mesh;
        bool off = false;
        for (u32 shift = 0; shift < 24; shift += 8)
            off |= std::abs(static_cast<int>(ours[i] >> shift & 255U) -
                            static_cast<int>(theirs[i] >> shift & 255U)) > visible;
        unlike += off;
    }
    return on_mesh == 0 ? 0 : static_cast<f64>(unlike) / static_cast<f64>(on_mesh);
}

bench_result run_raster(const bench_options& o, const progress& report_progress) {
    const kernels::mesh_shape shape = kernels::mesh_shape_from(o.scene);
    use_instruction_set(o.simd);
    device::device_id id;
    if (o.cuda) id.kind = device::device_kind::cuda, id.ordinal = o.ordinal;
    const auto context = device::open(id, o.threads);
    const auto queue = context->make_queue();
    std::unique_ptr<peer> companion;
    if (o.opengl) companion = open_opengl({o.cuda, o.ordinal, o.threads, false});
    bench_result all{context->description(),
                     o.scene,
                     o.cuda ? "" : kernels::cpu::best_entries().name,
                     o.frames,
                     o.instances,
                     0,
                     "",
                     "",
                     "",
                     {}};
    if (companion)
        all.peer_renderer = companion->renderer(), all.peer_version = companion->version(),
        all.peer_timing = companion->timing();
    report_progress("copy bandwidth");
    all.bandwidth = copy_bandwidth(*context, *queue, copied_bytes);
    const std::size_t cells = o.triangles.size() * o.sizes.size();
    const auto finish_cell = [&](cell_result& r, u32 triangles, const std::vector<u32>& picture) {
        r.triangles_wanted = triangles;
        r.image_hash = hash_of(picture);
        all.cells.push_back(r);
        if (!o.picture.empty() && all.cells.size() == cells)
            viewer::write_picture(o.picture,
                                  {reinterpret_cast<const u8*>(picture.data()), picture.size() * 4},
                                  r.size.width, r.size.height);
    };
    for (const u32 triangles : o.triangles) {
        bool loaded = false;
        for (const picture_size size : o.sizes) {
            const std::string name = fmt::format("cell {} of {}: {} triangles at {}x{}", all.cells.size() + 1,
                                                 cells, triangles, size.width, size.height);
            report_progress(name + ": making the mesh");
            u64 last_report_ns = 0;
            const auto at_frame = [&](u32 k) {
                if (now_ns() - last_report_ns < report_every_ns) return;
                last_report_ns = now_ns();
                report_progress(fmt::format("{}: frame {} of {}", name, k + 1, o.frames + warm_up_frames));
            };
            kernels::chain_options scene{shape, triangles, size.width, size.height, o.instances};
            if (o.stages) {
                scene.stand = kernels::arrangement::field, scene.spacing = 1.75F;
                scene.samples = o.samples;
                std::vector<u32> picture;
                cell_result r = measure_stages(*context, *queue, o, scene, at_frame, picture);
                finish_cell(r, triangles, picture);
                continue;
            }
            kernels::chain chain(*context, *queue, scene);
            chain.scene.shading = o.shading;
            if (companion && !loaded) companion->load(chain.layout(), chain.mesh_bytes());
            loaded = true;
            if (companion) companion->resize(size.width, size.height);
            cell work(*queue, o, chain, companion.get());
            const samples s = work.measure(at_frame);
            cell_result r = result_of(chain, o, size, s);
            const std::vector<u32> picture = chain.render(o.first, static_cast<kernels::raster_path>(o.path));
            if (companion) {
                (void)companion->draw(chain.scene, chain.models());
                r.peer_unlike = share_unlike(picture, companion->picture(), size.width, size.height);
            }
            finish_cell(r, triangles, picture);
        }
    }
    return all;
}

}  // namespace carousel::bench
