#pragma once
// The results of a raster bench as JSON and as a table.
//
// JSON: {device, simd, scene, frames, instances, copy_bytes_per_s, peer: null | {api, renderer, version,
// timing}, results: [{
//   triangles_wanted, triangles, vertices, width, height, listed, culled, dropped, image_hash,
//   vertex_ms, fragment_ms, frame_ms, raster_ms, resolve_ms, cpu_ms: {median, p95} or null where it isn't
//   measured, ring_bytes, floor_bytes, floor_ms, fraction_of_floor, peer_frame_ms, peer_cpu_ms: {median, p95}
//   | null, peer_unlike, ratio_to_peer: number | null}]}
// peer_unlike: share of the mesh's pixels that differ from the peer's by more than 16/255 in a channel; it
// shows whether both drew the same scene. fraction_of_floor = floor_ms / frame_ms.median; ratio_to_peer =
// frame_ms.median / peer_frame_ms.median.

#include <string>

#include "bench/raster.hpp"

namespace carousel::bench {

[[nodiscard]] std::string json_of(const bench_result& r);
[[nodiscard]] std::string table_of(const bench_result& r);

}  // namespace carousel::bench
