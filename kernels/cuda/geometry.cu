// CUDA implementations for meshes, textures, matrices and sharpening.

#include "kernels/assets.hpp"
#include "kernels/body/cluster.hpp"
#include "kernels/body/matrix.hpp"
#include "kernels/body/pattern.hpp"
#include "kernels/body/shape_net.hpp"
#include "kernels/body/sharpen.hpp"
#include "kernels/cuda/entries.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/shape_net.hpp"

namespace carousel::kernels::cuda {
namespace {

__global__ void fill_vertices(body::shape_grid grid, mesh_layout layout, std::byte* block) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < layout.counts.vertex_count) store_vertex(block, layout, i, body::vertex_of(grid, i));
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

__global__ void fill_header(mesh_counts counts, mesh_header* header) {
    *header = mesh_header{mesh_magic, mesh_version, counts};
}

__global__ void fill_models(u64 frame_number, f32 spin, u32 count, f32 spacing, arrangement stand,
                            draw_record* draw, f32* models) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) *draw = draw_record{count, {}};
    if (i >= count) return;
    if (stand == arrangement::field)
        body::field_matrix(frame_number, spin, i, spacing, models + u64{i} * 16);
    else
        body::model_matrix(frame_number, spin, i, count, spacing, models + u64{i} * 16);
}

__global__ void sharpen_pixels(const u32* in, u32* out, i32 width, i32 height, i32 strength) {
    const i32 x = static_cast<i32>(blockIdx.x * blockDim.x + threadIdx.x),
              y = static_cast<i32>(blockIdx.y * blockDim.y + threadIdx.y);
    if (x < width && y < height)
        out[i64{y} * width + x] = body::sharpen_pixel(in, width, height, x, y, strength);
}

/// Runs once per mesh, with one thread per cluster.
__global__ void fill_clusters(mesh_view mesh, bool moves, cluster_bounds* out, u16* numbers, u32* corners) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < cluster_count(mesh.counts)) body::describe_cluster(mesh, moves, i, out, numbers, corners);
}

// Runs the network on a GPU, with one block per picture and one thread per hidden neuron.

__global__ void answer_pictures(shape_net_args args) {
    __shared__ u8 hidden[net_hidden];
    __shared__ i32 scores[net_classes];
    const u64 n = blockIdx.x;
    const u32 k = threadIdx.x;
    hidden[k] = body::hidden_value(*args.weights, args.pictures + n * net_inputs, k);
    __syncthreads();
    if (k < net_classes) {
        scores[k] = body::class_score(*args.weights, hidden, k);
        args.scores[n * net_classes + k] = scores[k];
    }
    __syncthreads();
    if (k == 0) args.classes[n] = body::best_class(scores);
}

}  // namespace

void generate_mesh(device::queue& q, const generate_mesh_args& args) {
    const procedural_mesh mesh = describe_procedural(args.shape, args.triangles);
    const mesh_layout l = lay_out_mesh(mesh.counts);
    const cudaStream_t stream = stream_of(q);
    fill_header<<<1, 1, 0, stream>>>(mesh.counts, reinterpret_cast<mesh_header*>(args.block));
    fill_vertices<<<blocks_for(mesh.counts.vertex_count, 128), 128, 0, stream>>>(mesh.grid, l, args.block);
    fill_indices<<<blocks_for(mesh.counts.triangle_count, 256), 256, 0, stream>>>(
        mesh.grid, mesh.counts.triangle_count, reinterpret_cast<u32*>(args.block + l.indices));
    const u32 width = mesh.counts.texture_width, height = mesh.counts.texture_height;
    fill_texture<<<blocks_for(u64{width} * height, 128), 128, 0, stream>>>(
        args.shape, false, width, height, reinterpret_cast<u32*>(args.block + l.texture));
    check_launch("generate_mesh");
    bound_clusters(q, {l, args.block, false});
}

void bound_clusters(device::queue& q, const bound_clusters_args& args) {
    fill_clusters<<<blocks_for(cluster_count(args.layout.counts), 64), 64, 0, stream_of(q)>>>(
        view_mesh(args.layout, args.block), args.moves,
        reinterpret_cast<cluster_bounds*>(args.block + args.layout.clusters),
        reinterpret_cast<u16*>(args.block + args.layout.local_vertices),
        reinterpret_cast<u32*>(args.block + args.layout.local_corners));
    check_launch("bound_clusters");
}

void generate_texture(device::queue& q, const generate_texture_args& args) {
    const mesh_counts& c = args.layout.counts;
    fill_texture<<<blocks_for(u64{c.texture_width} * c.texture_height, 128), 128, 0, stream_of(q)>>>(
        mesh_shape::bumpy_sphere, true, c.texture_width, c.texture_height,
        reinterpret_cast<u32*>(args.block + args.layout.texture));
    check_launch("generate_texture");
}

void animate_instances(device::queue& q, const animate_args& args) {
    launch("fill_models", fill_models, blocks_for(args.instance_count, 64), 64, q, args.frame_number,
           args.scene.spin, args.instance_count, args.spacing, args.stand, args.draw, args.models);
}

void sharpen(device::queue& q, const sharpen_args& args) {
    const dim3 threads(32, 8), blocks((args.width + 31) / 32, (args.height + 7) / 8);
    launch("sharpen_pixels", sharpen_pixels, blocks, threads, q, reinterpret_cast<const u32*>(args.in),
           reinterpret_cast<u32*>(args.out), static_cast<i32>(args.width), static_cast<i32>(args.height),
           static_cast<i32>(args.strength));
}

void run_shape_net(device::queue& q, const shape_net_args& args) {
    answer_pictures<<<args.batch, net_hidden, 0, stream_of(q)>>>(args);
    check_launch("answer_pictures");
}

}  // namespace carousel::kernels::cuda
