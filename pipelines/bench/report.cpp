#include "bench/raster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/json.hpp"
#include "plot/chart.hpp"

namespace carousel::bench {
namespace {

using nlohmann::ordered_json;

ordered_json quantiles_json(const quantiles& q) { return {{"median", q.median}, {"p95", q.p95}}; }
ordered_json when(bool there, const quantiles& q) {
    return there ? quantiles_json(q) : ordered_json(nullptr);
}

template <typename Number>
ordered_json known(bool there, Number n) {
    return there ? ordered_json(n) : ordered_json(nullptr);
}

f64 floor_ms(const bench_result& r, const cell_result& c) {
    return static_cast<f64>(c.bytes.floor) / r.bandwidth * 1000.0;
}

ordered_json cell_json(const bench_result& r, const cell_result& c) {
    return {{"triangles_wanted", c.triangles_wanted},
            {"triangles", c.triangles},
            {"vertices", c.vertices},
            {"width", c.size.width},
            {"height", c.size.height},
            {"listed", u64{c.counters.small} + c.counters.large},
            {"culled", c.counters.culled},
            {"dropped", u64{c.counters.not_finite} + c.counters.bad_index},
            {"image_hash", fmt::format("{:016x}", c.image_hash)},
            {"vertex_ms", quantiles_json(c.vertex)},
            {"fragment_ms", quantiles_json(c.fragment)},
            {"frame_ms", quantiles_json(c.frame)},
            {"raster_ms", when(c.split, c.raster)},
            {"resolve_ms", when(c.split, c.resolve)},
            {"shadow_ms", when(c.staged, c.shadow)},
            {"light_ms", when(c.staged, c.light)},
            {"taa_ms", when(c.staged, c.taa)},
            {"post_ms", when(c.staged, c.post)},
            {"cpu_ms", when(c.cpu_timed, c.cpu)},
            {"ring_bytes", known(!c.staged, c.bytes.ring)},
            {"floor_bytes", known(!c.staged, c.bytes.floor)},
            {"floor_ms", known(!c.staged, floor_ms(r, c))},
            {"fraction_of_floor", known(!c.staged, floor_ms(r, c) / c.frame.median)},
            {"peer_frame_ms", when(c.with_peer, c.peer)},
            {"peer_cpu_ms", when(c.with_peer && c.cpu_timed, c.peer_cpu)},
            {"peer_unlike", c.with_peer ? ordered_json(c.peer_unlike) : ordered_json(nullptr)},
            {"ratio_to_peer", c.with_peer ? ordered_json(c.ratio_to_peer) : ordered_json(nullptr)}};
}

std::string median_text(bool there, const quantiles& q) {
    return there ? fmt::format("{:.3f}", q.median) : "-";
}

std::string table_of_stages(const bench_result& r) {
    std::string text = fmt::format(
        "ms, medians (frame: p95 too)\n{:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} "
        "{:>9}\n",
        "triangles", "size", "vertex", "fragment", "shadow", "light", "taa", "post", "frame", "p95",
        "CPU time");
    for (const cell_result& c : r.cells)
        text += fmt::format(
            "{:>10} {:>10} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>9}\n",
            c.triangles, fmt::format("{}x{}", c.size.width, c.size.height), c.vertex.median,
            c.fragment.median, c.shadow.median, c.light.median, c.taa.median, c.post.median, c.frame.median,
            c.frame.p95, median_text(c.cpu_timed, c.cpu));
    return text;
}

std::vector<plot::curve> curves_of(const bench_result& r) {
    std::vector<picture_size> sizes;
    for (const cell_result& c : r.cells)
        if (std::find(sizes.begin(), sizes.end(), c.size) == sizes.end()) sizes.push_back(c.size);
    std::vector<plot::curve> all;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
        const std::string size = fmt::format("{}x{}", sizes[k].width, sizes[k].height);
        plot::curve ours{"Carousel " + size, {}, false, k}, theirs{"OpenGL " + size, {}, true, k};
        for (const cell_result& c : r.cells) {
            if (!(c.size == sizes[k])) continue;
            ours.points.emplace_back(c.triangles, c.frame.median);
            if (c.with_peer) theirs.points.emplace_back(c.triangles, c.peer.median);
        }
        std::sort(ours.points.begin(), ours.points.end());
        std::sort(theirs.points.begin(), theirs.points.end());
        all.push_back(std::move(ours));
        if (!theirs.points.empty()) all.push_back(std::move(theirs));
    }
    return all;
}

}  // namespace

std::string json_of(const bench_result& r) {
    ordered_json all = {
        {"device", r.device},       {"simd", r.simd.empty() ? ordered_json(nullptr) : ordered_json(r.simd)},
        {"scene", r.scene},         {"frames", r.frames},
        {"instances", r.instances}, {"copy_bytes_per_s", r.bandwidth},
        {"peer", nullptr},          {"results", ordered_json::array()}};
    if (!r.peer_renderer.empty())
        all["peer"] = {{"api", "opengl"},
                       {"renderer", r.peer_renderer},
                       {"version", r.peer_version},
                       {"timing", r.peer_timing}};
    for (const cell_result& c : r.cells) all["results"].push_back(cell_json(r, c));
    return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string table_of(const bench_result& r) {
    std::string text = fmt::format("{}{} | {} | {} frames per cell | copies at {:.1f} GB/s\n", r.device,
                                   r.simd.empty() ? "" : ", " + r.simd, r.scene, r.frames, r.bandwidth / 1e9);
    if (!r.peer_renderer.empty())
        text +=
            fmt::format("peer: OpenGL {} | {} | {} time\n", r.peer_version, r.peer_renderer, r.peer_timing);
    if (!r.cells.empty() && r.cells.front().staged) return text + table_of_stages(r);
    text += fmt::format(
        "ms, medians (frame: p95 too)\n{:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8} "
        "{:>9} {:>9} {:>6}\n",
        "triangles", "size", "vertex", "fragment", "raster", "resolve", "frame", "p95", "CPU time", "ring MB",
        "of floor", "peer", "its CPU", "ratio");
    for (const cell_result& c : r.cells)
        text += fmt::format(
            "{:>10} {:>10} {:>9.3f} {:>9.3f} {:>9} {:>9} {:>9.3f} {:>9.3f} {:>9} {:>8.1f} {:>8.3f} {:>9} "
            "{:>9} {:>6}\n",
            c.triangles, fmt::format("{}x{}", c.size.width, c.size.height), c.vertex.median,
            c.fragment.median, median_text(c.split, c.raster), median_text(c.split, c.resolve),
            c.frame.median, c.frame.p95, median_text(c.cpu_timed, c.cpu),
            static_cast<f64>(c.bytes.ring) / 1e6, floor_ms(r, c) / c.frame.median,
            median_text(c.with_peer, c.peer), median_text(c.with_peer && c.cpu_timed, c.peer_cpu),
            c.with_peer ? fmt::format("{:.3f}", c.ratio_to_peer) : "-");
    return text;
}

std::string plot_of(const bench_result& r) {
    return plot::svg_of(plot::chart{
        fmt::format("{}, one frame: {}", r.scene, r.device),
        r.peer_renderer.empty() ? fmt::format("medians of {} frames", r.frames)
                                : fmt::format("medians of {} frames; OpenGL: {}", r.frames, r.peer_renderer),
        "triangles of the mesh", "ms per frame (vertex + clear + raster + resolve)", curves_of(r)});
}

}  // namespace carousel::bench
