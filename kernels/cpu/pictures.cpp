// The parts of the CPU backend that do not process triangles: meshes, textures, animation, sharpening.

#include <algorithm>
#include <atomic>
#include <cstring>

#include "device/cpu/pool.hpp"
#include "kernels/assets.hpp"
#include "kernels/body/block_hash.hpp"
#include "kernels/body/pattern.hpp"
#include "kernels/body/shape_net.hpp"
#include "kernels/cpu/entries.hpp"
#include "kernels/shape_net.hpp"

namespace carousel::kernels::cpu {
namespace {

// Computes the hash of a plane on the CPU; the plane's blocks are distributed over all threads.

constexpr u64 blocks_at_once = 32;

/// Returns a block's bytes in contiguous memory. If the block is whole and the plane is dense, this is the
/// plane's own memory; if not, the bytes are copied into `room`, padded with zeros, and `room` is returned.
const unsigned char* block_of(const body::hash_view& in, u64 index, unsigned char* room) {
    const u64 begin = index * body::hash_block_bytes,
              end = std::min(in.bytes(), begin + body::hash_block_bytes);
    if (in.dense() && end - begin == body::hash_block_bytes) return in.data + begin;
    std::memset(room, 0, body::hash_block_bytes);
    for (u64 at = begin; at < end;) {
        const u64 in_row = in.dense() ? at : at % in.row_bytes;
        const u64 row = in.dense() ? 0 : at / in.row_bytes;
        const u64 count = std::min(end - at, (in.dense() ? in.bytes() : in.row_bytes) - in_row);
        std::memcpy(room + (at - begin), in.data + row * in.pitch + in_row, count);
        at += count;
    }
    return room;
}

}  // namespace

void generate_mesh(device::queue& q, const generate_mesh_args& args) {
    q.submit([args](device::cpu::pool& pool) {
        const procedural_mesh mesh = describe_procedural(args.shape, args.triangles);
        const mesh_layout l = lay_out_mesh(mesh.counts);
        *reinterpret_cast<mesh_header*>(args.block) = mesh_header{mesh_magic, mesh_version, mesh.counts};
        u32* const indices = reinterpret_cast<u32*>(args.block + l.indices);
        u32* const texels = reinterpret_cast<u32*>(args.block + l.texture);
        pool.parallel_for(mesh.counts.vertex_count, 1024, [&](u64 begin, u64 end, unsigned) {
            for (u64 i = begin; i < end; ++i)
                store_vertex(args.block, l, i, body::vertex_of(mesh.grid, static_cast<u32>(i)));
        });
        pool.parallel_for(mesh.counts.triangle_count, 8192, [&](u64 begin, u64 end, unsigned) {
            for (u64 i = begin; i < end; ++i) {
                const body::index_triple t = body::triangle_of(mesh.grid, static_cast<u32>(i));
                indices[3 * i] = t.a, indices[3 * i + 1] = t.b, indices[3 * i + 2] = t.c;
            }
        });
        const u32 width = mesh.counts.texture_width, height = mesh.counts.texture_height;
        pool.parallel_for(height, 8, [&](u64 begin, u64 end, unsigned) {
            for (u64 y = begin; y < end; ++y) {
                for (u32 x = 0; x < width; ++x)
                    texels[y * width + x] = body::texel_of(args.shape, x, static_cast<u32>(y), width, height);
            }
        });
    });
    bound_clusters(q, {lay_out_mesh(procedural_counts(args.shape, args.triangles)), args.block});
}

void generate_texture(device::queue& q, const generate_texture_args& args) {
    q.submit([args](device::cpu::pool& pool) {
        u32* const texels = reinterpret_cast<u32*>(args.block + args.layout.texture);
        const u32 width = args.layout.counts.texture_width;
        pool.parallel_for(args.layout.counts.texture_height, 8, [&](u64 begin, u64 end, unsigned) {
            for (u64 y = begin; y < end; ++y) {
                for (u32 x = 0; x < width; ++x)
                    texels[y * width + x] = body::pack(body::checker_color(x, static_cast<u32>(y)));
            }
        });
    });
}

void animate_instances(device::queue& q, const animate_args& args) {
    q.submit([args](device::cpu::pool&) {
        *args.draw = draw_record{args.instance_count, {}};
        for (u32 i = 0; i < args.instance_count; ++i) {
            f32* const model = args.models + static_cast<u64>(i) * 16;
            if (args.stand == arrangement::field)
                body::field_matrix(args.frame_number, args.scene.spin, i, args.spacing, model);
            else
                body::model_matrix(args.frame_number, args.scene.spin, i, args.instance_count, args.spacing,
                                   model);
        }
    });
}

void run_sharpen(device::cpu::pool& pool, const sharpen_args& args, const entries& use) {
    pool.parallel_for(args.height, 16, [&](u64 begin, u64 end, unsigned) {
        use.sharpen_rows(args, static_cast<u32>(begin), static_cast<u32>(end));
    });
}

void sharpen(device::queue& q, const sharpen_args& args) {
    q.submit([args](device::cpu::pool& pool) { run_sharpen(pool, args, best_entries()); });
}

void run_hash_plane(device::cpu::pool& pool, const hash_args& args, const entries& use) {
    const body::hash_view in{reinterpret_cast<const unsigned char*>(args.data), args.row_bytes, args.rows,
                             args.pitch};
    std::atomic<u64> sum{0};
    pool.parallel_for(in.blocks(), blocks_at_once, [&](u64 begin, u64 end, unsigned) {
        alignas(64) unsigned char room[body::hash_block_bytes];
        u64 part = 0;
        for (u64 b = begin; b < end; ++b)
            part += body::hash_block(use.hash_columns_of(block_of(in, b, room)), b);
        sum.fetch_add(part, std::memory_order_relaxed);
    });
    *args.out = body::hash_finished(sum.load(std::memory_order_relaxed), in.bytes());
}

void hash_plane(device::queue& q, const hash_args& args) {
    q.submit([args](device::cpu::pool& pool) { run_hash_plane(pool, args, best_entries()); });
}

// Runs the network on the CPU; the pictures are distributed over the pool's threads.

void run_shape_net(device::queue& q, const shape_net_args& args) {
    q.submit([args](device::cpu::pool& pool) {
        pool.parallel_for(args.batch, 4, [&](u64 begin, u64 end, unsigned) {
            for (u64 n = begin; n < end; ++n) {
                u8 hidden[net_hidden];
                i32* const scores = args.scores + n * net_classes;
                for (u32 k = 0; k < net_hidden; ++k)
                    hidden[k] = body::hidden_value(*args.weights, args.pictures + n * net_inputs, k);
                for (u32 k = 0; k < net_classes; ++k) scores[k] = body::class_score(*args.weights, hidden, k);
                args.classes[n] = body::best_class(scores);
            }
        });
    });
}

}  // namespace carousel::kernels::cpu
