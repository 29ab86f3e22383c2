#pragma once
// Measures cells (triangles x size) of one scene on one device, beside a peer when one is wanted: frame by
// frame by turns, so that whatever else the machine does meets both alike. Before each measured frame of a
// GPU each side draws one that isn't measured: switching between two contexts of one GPU would be counted
// otherwise.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/bytes.hpp"
#include "bench/options.hpp"
#include "bench/peer.hpp"

namespace carousel::bench {

/// Of the samples of one cell, in ms. p95 is the sample at or above which 5 % lie.
struct quantiles {
    f64 median = 0, p95 = 0;
};
/// `samples` is not empty.
[[nodiscard]] quantiles quantiles_of(std::vector<f64> samples);

struct cell_result {
    u32 triangles_wanted = 0, triangles = 0, vertices = 0;  ///< of the mesh
    picture_size size;
    kernels::triangle_counters counters{};
    quantiles vertex, fragment, frame;  ///< frame: vertex + fragment, sample by sample
    bool split = false;                 ///< raster and resolve were told apart (GPU)
    quantiles raster, resolve;          ///< clear + raster; resolve
    bool cpu_timed = false;
    quantiles cpu;  ///< CPU time of all threads, of a frame
    frame_bytes bytes;
    bool with_peer = false;
    quantiles peer;
    quantiles peer_cpu;     ///< CPU time of all threads, of a frame
    f64 ratio_to_peer = 0;  ///< frame.median / peer.median
    f64 peer_unlike = 0;  ///< share of pixels with a channel more than 16/255 off on the mesh: edges, filters
    u64 image_hash = 0;   ///< of the frame `first`
};

struct bench_result {
    std::string device, scene, simd;  ///< simd: "" on a GPU
    u32 frames = 0, instances = 0;
    f64 bandwidth = 0;                                     ///< copy_bandwidth()
    std::string peer_renderer, peer_version, peer_timing;  ///< "" without
    std::vector<cell_result> cells;
};

/// Share of the pixels where `ours` shows the mesh and the two pictures (RGBA words, width x height) are more
/// than 16/255 apart in a channel. The background is left out: the peer only clears. 0 without a mesh in the
/// picture.
[[nodiscard]] f64 share_unlike(const std::vector<u32>& ours, const std::vector<u32>& theirs, u32 width,
                               u32 height);

/// Told what is being done, for a terminal.
using progress = std::function<void(const std::string&)>;

/// Throws config_error, device_error, cuda_error, output_error.
[[nodiscard]] bench_result run_raster(const bench_options& options, const progress& report_progress);

}  // namespace carousel::bench
