// No include guard by purpose: part of cpu/simd_source.hpp. Vertex transform and triangle classification.

void vertices(const vertex_job& job, u32 instance, u32 begin, u32 end) {
    const instance_record record = job.out.instances[instance];
    const viewport view = job.view;
    const f32* const in = job.mesh.positions;
    screen_vertex* const out = job.out.vertices + static_cast<u64>(instance) * job.mesh.counts.vertex_count;
    alignas(64) u32 words[batch_size * 4];
    alignas(64) f32 px[batch_size], py[batch_size], pz[batch_size];
    for (u32 first = begin; first < end; first += batch_size) {
        const u32 n = end - first < batch_size ? end - first : batch_size;
        for (u32 l = 0; l < n; ++l) {
            const u64 at = static_cast<u64>(first + l) * 3;
            px[l] = in[at], py[l] = in[at + 1], pz[l] = in[at + 2];
        }
        for (u32 l = n; l < batch_size; ++l) px[l] = py[l] = pz[l] = 0.0F;
        for (u32 l = 0; l < batch_size; ++l) {
            const screen_vertex v = transform_vertex(record.clip, {px[l], py[l], pz[l]}, view);
            words[4 * l] = static_cast<u32>(v.x);
            words[4 * l + 1] = static_cast<u32>(v.y);
            words[4 * l + 2] = bits_of(v.inverse_w);
            words[4 * l + 3] = v.outcode;
        }
        __builtin_memcpy(static_cast<void*>(out + first), words, static_cast<u64>(n) * sizeof(screen_vertex));
    }
}

void triangles(const vertex_job& job, u32 instance, u32 begin, u32 end, classified& out) {
    const u32 per_instance = job.mesh.counts.triangle_count;
    const screen_vertex* const vertices_of = job.out.vertices + static_cast<u64>(instance) * job.mesh.counts.vertex_count;
    const u32 first_id = instance * per_instance;
    const i32 width = job.view.width, height = job.view.height;
    alignas(64) i32 first[batch_size];
    alignas(64) i32 base[batch_size] = {};
    alignas(64) u32 kind[batch_size];
    batch b;
    for (u32 start = begin; start < end; start += batch_size) {
        const u32 n = end - start < batch_size ? end - start : batch_size;
        for (u32 l = 0; l < batch_size; ++l) {
            b.valid[l] = 1;
            first[l] = static_cast<i32>(start + (l < n ? l : 0U)) * 3;
        }
        gather_corners(b, job.mesh, vertices_of, first, base);
        for (u32 l = 0; l < batch_size; ++l) {
            kind[l] = static_cast<u32>(classify(corner(b, 0, l), corner(b, 1, l), corner(b, 2, l), width, height));
        }
        for (u32 l = 0; l < n; ++l) {
            const u32 id = first_id + start + l;
            const u32 k = b.valid[l] ? kind[l] : 4U;
            out.small[out.small_count] = id;
            out.large[out.large_count] = id;
            out.small_count += u32{k == static_cast<u32>(triangle_class::small)};
            out.large_count += u32{k == static_cast<u32>(triangle_class::large)};
            out.culled += u32{k == static_cast<u32>(triangle_class::culled)};
            out.not_finite += u32{k == static_cast<u32>(triangle_class::not_finite)};
            out.bad_index += u32{k == 4U};
        }
    }
}
