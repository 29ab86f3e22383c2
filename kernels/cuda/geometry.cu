// CUDA entries up to the triangle list: meshes, textures, animation, vertex stage; and sharpening.
#include "kernels/body/pattern.hpp"
#include "kernels/body/setup.hpp"
#include "kernels/body/sharpen.hpp"
#include "kernels/cuda/entries.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/procedural.hpp"

namespace carousel::kernels::cuda {
namespace {

__global__ void fill_vertices(body::shape_grid grid, u32 count, f32* positions, f32* normals, f32* texcoords) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const body::mesh_vertex v = body::vertex_of(grid, i);
    const u64 at = u64{i} * 3;
    positions[at] = v.position.x, positions[at + 1] = v.position.y, positions[at + 2] = v.position.z;
    normals[at] = v.normal.x, normals[at + 1] = v.normal.y, normals[at + 2] = v.normal.z;
    texcoords[u64{i} * 2] = v.u, texcoords[u64{i} * 2 + 1] = v.v;
}

__global__ void fill_indices(body::shape_grid grid, u32 count, u32* indices) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const body::index_triple t = body::triangle_of(grid, i);
    indices[u64{i} * 3] = t.a, indices[u64{i} * 3 + 1] = t.b, indices[u64{i} * 3 + 2] = t.c;
}

__global__ void fill_texture(mesh_shape shape, bool checker, u32 width, u32 height, u32* texels) {
    const u64 i = u64{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= u64{width} * height) return;
    const u32 x = static_cast<u32>(i % width), y = static_cast<u32>(i / width);
    texels[i] = checker ? body::pack(body::checker_color(x, y)) : body::texel_of(shape, x, y, width, height);
}

__global__ void fill_header(mesh_counts counts, mesh_header* header) { *header = mesh_header{mesh_magic, 1, counts}; }

__global__ void fill_models(u64 sequence, f32 spin, u32 count, f32 spacing, arrangement stand, draw_record* draw, f32* models) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) *draw = draw_record{count, {}};
    if (i >= count) return;
    if (stand == arrangement::field)
        body::field_matrix(sequence, spin, i, spacing, models + u64{i} * 16);
    else
        body::model_matrix(sequence, spin, i, count, spacing, models + u64{i} * 16);
}

__global__ void sharpen_pixels(const u32* in, u32* out, i32 width, i32 height, i32 strength) {
    const i32 x = static_cast<i32>(blockIdx.x * blockDim.x + threadIdx.x),
              y = static_cast<i32>(blockIdx.y * blockDim.y + threadIdx.y);
    if (x < width && y < height) out[i64{y} * width + x] = body::sharpen_pixel(in, width, height, x, y, strength);
}

constexpr u32 vertex_threads = 256;

/// One thread a vertex; block row = instance. The block's first threads multiply the instance's matrices; the first block also
/// writes them down for the fragment stage and clears the counters, which the next kernel adds to.
__global__ void __launch_bounds__(vertex_threads) transform(mesh_view mesh, body::matrix34 projection, body::viewport view,
                                                            const draw_record* draw, const f32* models, triangle_buffers out) {
    __shared__ f32 clip[12];
    __shared__ u32 instances;
    if (threadIdx.x == 0) instances = body::min_(draw->instance_count, out.max_instances);
    __syncthreads();
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *out.counters = triangle_counters{0, 0, 0, 0, 0, instances, {}};
    for (u32 instance = blockIdx.y; instance < instances; instance += gridDim.y) {
        __syncthreads();
        if (threadIdx.x < 12) {
            const f32* const model = models + u64{instance} * 16;
            clip[threadIdx.x] = body::product_element(projection, model, threadIdx.x);
            if (blockIdx.x == 0) {
                out.instances[instance].clip[threadIdx.x] = clip[threadIdx.x];
                out.instances[instance].model[threadIdx.x] = model[threadIdx.x];
            }
        }
        __syncthreads();
        const u32 i = blockIdx.x * vertex_threads + threadIdx.x;
        if (i < mesh.counts.vertex_count) {
            const f32* const p = mesh.positions + u64{i} * 3;
            out.vertices[u64{instance} * mesh.counts.vertex_count + i] = body::transform_vertex(clip, {p[0], p[1], p[2]}, view);
        }
    }
}

constexpr u32 classify_threads = 256, classify_each = 4;

struct block_totals {
    u32 found[5];  ///< small, large, culled, not finite, bad index: the order of triangle_class, and of triangle_counters
    u32 base_small, base_large;
};

/// Culls and classifies; a block gathers what it keeps and reserves room in the list once.
__global__ void __launch_bounds__(classify_threads)
    classify_triangles(mesh_view mesh, i32 width, i32 height, triangle_buffers out) {
    __shared__ block_totals totals;
    __shared__ u32 instances;  // one read for the whole block, which must leave together
    if (threadIdx.x == 0) {
        totals = block_totals{};
        instances = body::min_(out.counters->instance_count, out.max_instances);
    }
    __syncthreads();
    const u32 count = mesh.counts.triangle_count, vertices = mesh.counts.vertex_count;
    const u64 capacity = u64{count} * out.max_instances;
    const u64 all = u64{count} * instances;
    const u64 first = u64{blockIdx.x} * (classify_threads * classify_each);
    if (first >= all) return;
    u32 kind[classify_each], place[classify_each];
    const u32 lane = threadIdx.x & 31U;
#pragma unroll
    for (u32 k = 0; k < classify_each; ++k) {
        const u64 id = first + k * classify_threads + threadIdx.x;
        kind[k] = 5;  // none
        if (id < all) {
            const u32 instance = static_cast<u32>(id / count);
            const u32* const index = mesh.indices + (id - u64{instance} * count) * 3;
            const u32 a = index[0], b = index[1], c = index[2];
            kind[k] = 4;  // an index out of range
            if (a < vertices && b < vertices && c < vertices) {
                const screen_vertex* const v = out.vertices + u64{instance} * vertices;
                kind[k] = static_cast<u32>(body::classify(v[a], v[b], v[c], width, height));
            }
        }
        const u32 small = __ballot_sync(~0U, kind[k] == 0), large = __ballot_sync(~0U, kind[k] == 1);
        const u32 culled = __ballot_sync(~0U, kind[k] == 2), not_finite = __ballot_sync(~0U, kind[k] == 3);
        const u32 bad = __ballot_sync(~0U, kind[k] == 4);
        // lane m adds what the warp found of class m (the order of block_totals' members) and learns where that begins
        const u32 mine = lane == 0 ? small : (lane == 1 ? large : (lane == 2 ? culled : (lane == 3 ? not_finite : bad)));
        u32 base = 0;
        if (lane < 5 && mine != 0) base = atomicAdd(totals.found + lane, static_cast<u32>(__popc(mine)));
        const u32 begin = __shfl_sync(~0U, base, kind[k] == 1 ? 1 : 0);
        place[k] = begin + __popc((kind[k] == 1 ? large : small) & ((1U << lane) - 1U));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        u32* const counters = &out.counters->small;
        for (u32 i = 2; i < 5; ++i) {
            if (totals.found[i]) atomicAdd(counters + i, totals.found[i]);
        }
        totals.base_small = totals.found[0] ? atomicAdd(counters, totals.found[0]) : 0U;
        totals.base_large = totals.found[1] ? atomicAdd(counters + 1, totals.found[1]) : 0U;
    }
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < classify_each; ++k) {
        const u32 id = static_cast<u32>(first + k * classify_threads + threadIdx.x);
        const u64 front = u64{totals.base_small} + place[k], back = u64{totals.base_large} + place[k];
        // counters that somebody else resets meanwhile (a revoked stage's slot) must not lead out of the list
        if (kind[k] == 0 && front < capacity) out.list[front] = id;
        if (kind[k] == 1 && back < capacity) out.list[capacity - 1 - back] = id;
    }
}

}  // namespace

void generate_mesh(device::queue& q, const generate_mesh_args& args) {
    const procedural_mesh mesh = describe_procedural(args.shape, args.triangles);
    const mesh_layout l = lay_out_mesh(mesh.counts);
    const cudaStream_t stream = stream_of(q);
    fill_header<<<1, 1, 0, stream>>>(mesh.counts, reinterpret_cast<mesh_header*>(args.block));
    fill_vertices<<<blocks_for(mesh.counts.vertex_count, 128), 128, 0, stream>>>(
        mesh.grid, mesh.counts.vertex_count, reinterpret_cast<f32*>(args.block + l.positions),
        reinterpret_cast<f32*>(args.block + l.normals), reinterpret_cast<f32*>(args.block + l.texcoords));
    fill_indices<<<blocks_for(mesh.counts.triangle_count, 256), 256, 0, stream>>>(mesh.grid, mesh.counts.triangle_count,
                                                                                  reinterpret_cast<u32*>(args.block + l.indices));
    const u32 width = mesh.counts.texture_width, height = mesh.counts.texture_height;
    fill_texture<<<blocks_for(u64{width} * height, 128), 128, 0, stream>>>(args.shape, false, width, height,
                                                                           reinterpret_cast<u32*>(args.block + l.texture));
    check_launch("generate_mesh");
}

void generate_texture(device::queue& q, const generate_texture_args& args) {
    const mesh_counts& c = args.layout.counts;
    fill_texture<<<blocks_for(u64{c.texture_width} * c.texture_height, 128), 128, 0, stream_of(q)>>>(
        mesh_shape::bumpy_sphere, true, c.texture_width, c.texture_height,
        reinterpret_cast<u32*>(args.block + args.layout.texture));
    check_launch("generate_texture");
}

void animate_instances(device::queue& q, const animate_args& args) {
    fill_models<<<blocks_for(args.instance_count, 64), 64, 0, stream_of(q)>>>(args.sequence, args.scene.spin, args.instance_count,
                                                                              args.spacing, args.stand, args.draw, args.models);
    check_launch("animate_instances");
}

void vertex_stage(device::queue& q, const vertex_stage_args& args) {
    const mesh_view mesh = view_mesh(args.mesh, args.mesh_block);
    const body::viewport view = body::make_viewport(args.width, args.height, args.scene.camera.near);
    const u32 rows = args.out.max_instances < 4096 ? args.out.max_instances : 4096;
    const cudaStream_t stream = stream_of(q);
    transform<<<dim3(blocks_for(mesh.counts.vertex_count, vertex_threads), rows), vertex_threads, 0, stream>>>(
        mesh, body::view_projection(args.scene.camera, args.width, args.height), view, args.draw, args.models, args.out);
    const u64 triangles = u64{mesh.counts.triangle_count} * args.out.max_instances;
    classify_triangles<<<blocks_for(triangles, classify_threads, classify_each), classify_threads, 0, stream>>>(
        mesh, view.width, view.height, args.out);
    check_launch("vertex_stage");
}

void sharpen(device::queue& q, const sharpen_args& args) {
    const dim3 threads(32, 8), blocks((args.width + 31) / 32, (args.height + 7) / 8);
    sharpen_pixels<<<blocks, threads, 0, stream_of(q)>>>(reinterpret_cast<const u32*>(args.in), reinterpret_cast<u32*>(args.out),
                                                         static_cast<i32>(args.width), static_cast<i32>(args.height),
                                                         static_cast<i32>(args.strength));
    check_launch("sharpen");
}

}  // namespace carousel::kernels::cuda
