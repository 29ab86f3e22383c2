#include "bench/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plot/chart.hpp"

namespace carousel::bench {
namespace {

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

std::string plot_of(const bench_result& r) {
    return plot::svg_of(plot::chart{
        fmt::format("{}, one frame: {}", r.scene, r.device),
        r.peer_renderer.empty() ? fmt::format("medians of {} frames", r.frames)
                                : fmt::format("medians of {} frames; OpenGL: {}", r.frames, r.peer_renderer),
        "triangles of the mesh", "ms per frame (vertex + clear + raster + resolve)", curves_of(r)});
}

}  // namespace carousel::bench
