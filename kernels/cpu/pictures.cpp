// The parts of the CPU backend that do not process triangles: meshes, textures, animation, sharpening.
#include "device/cpu/pool.hpp"
#include "kernels/body/pattern.hpp"
#include "kernels/cpu/entries.hpp"
#include "kernels/procedural.hpp"

namespace carousel::kernels::cpu {

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

}  // namespace carousel::kernels::cpu
