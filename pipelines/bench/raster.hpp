#pragma once
// Measures cells (triangles x size) of one scene on one device, optionally together with a peer. The renderer
// and the peer alternate frame by frame, so that other load on the machine affects both. On a GPU each side
// draws an unmeasured frame before each measured one, so that the switch between the two contexts is not
// counted.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/bytes.hpp"
#include "bench/options.hpp"
#include "bench/peer.hpp"
#include "kernels/chain.hpp"

namespace carousel::bench {

/// Quantiles of the samples of one cell, in ms. p95: 5 % of the samples are at or above it.
struct quantiles {
    f64 median = 0, p95 = 0;
};
/// `samples` must not be empty.
[[nodiscard]] quantiles quantiles_of(std::vector<f64> samples);

struct cell_result {
    u32 triangles_wanted = 0, triangles = 0, vertices = 0;  ///< of the mesh
    picture_size size;
    kernels::triangle_counters counters{};
    quantiles vertex, fragment, frame;   ///< frame: the sum of vertex and fragment, computed for each sample
    bool split = false;                  ///< raster and resolve were measured separately (GPU)
    quantiles raster, resolve;           ///< clear + raster; resolve
    bool staged = false;                 ///< the stages of looks.toml; fragment is then the G-buffer
    quantiles shadow, light, taa, post;  ///< shadow: vertices and raster of the light's view
    bool cpu_timed = false;
    quantiles cpu;  ///< CPU time of all threads per frame
    frame_bytes bytes;
    bool with_peer = false;
    quantiles peer;
    quantiles peer_cpu;     ///< CPU time of all threads per frame
    f64 ratio_to_peer = 0;  ///< frame.median / peer.median
    f64 peer_unlike = 0;  ///< share of the mesh's pixels that differ from the peer's by more than 16/255 in a
                          ///< channel; edges and filters cause such differences
    u64 image_hash = 0;   ///< of frame `first`
};

struct bench_result {
    std::string device, scene, simd;  ///< simd: "" on a GPU
    u32 frames = 0, instances = 0;
    f64 bandwidth = 0;                                     ///< copy_bandwidth()
    std::string peer_renderer, peer_version, peer_timing;  ///< "" without a peer
    std::vector<cell_result> cells;
};

/// Compares two pictures (RGBA words, width x height), but only the pixels in which `ours` shows the mesh,
/// because the peer does not draw the background but only clears it. Returns the share of these pixels that
/// differ by more than 16/255 in a channel; 0 if `ours` shows no mesh.
[[nodiscard]] f64 share_unlike(const std::vector<u32>& ours, const std::vector<u32>& theirs, u32 width,
                               u32 height);

/// One cell with the stages of looks.toml, and its picture of frame `first`.
[[nodiscard]] cell_result measure_stages(device::context& context, device::queue& queue,
                                         const bench_options& options, const kernels::chain_options& scene,
                                         const std::function<void(u32)>& at_frame, std::vector<u32>& picture);

/// Called with a description of the current step, for a terminal.
using progress = std::function<void(const std::string&)>;

/// Runs the bench. Throws config_error, device_error, cuda_error, output_error.
[[nodiscard]] bench_result run_raster(const bench_options& options, const progress& report_progress);

// The results of a raster bench as JSON and as a table.
// JSON: {device, simd, scene, frames, instances, copy_bytes_per_s, peer: null | {api, renderer, version,
// timing}, results: [{
//   triangles_wanted, triangles, vertices, width, height, listed, culled, dropped, image_hash,
//   vertex_ms, fragment_ms, frame_ms, raster_ms, resolve_ms, shadow_ms, light_ms, taa_ms, post_ms, cpu_ms:
//   {median, p95} or null where it isn't measured, ring_bytes, floor_bytes, floor_ms, fraction_of_floor,
//   peer_frame_ms, peer_cpu_ms: {median, p95} | null, peer_unlike, ratio_to_peer: number | null}]}
// peer_unlike: share of the mesh's pixels that differ from the peer's by more than 16/255 in a channel; it
// shows whether both drew the same scene. fraction_of_floor = floor_ms / frame_ms.median; ratio_to_peer =
// frame_ms.median / peer_frame_ms.median.

[[nodiscard]] std::string json_of(const bench_result& r);
[[nodiscard]] std::string table_of(const bench_result& r);

// The plot of a bench: frame time over triangles, both axes logarithmic, one line per picture size. The
// peer's lines are dashed. Self-contained SVG 1.1 (no external fonts or styles). A chart with only one cell
// is also valid: its line of one point is drawn as a dot.

[[nodiscard]] std::string plot_of(const bench_result& r);

}  // namespace carousel::bench
