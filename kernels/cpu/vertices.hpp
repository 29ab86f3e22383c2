// No include guard on purpose: part of cpu/simd_source.hpp. Transforms and classifies the triangles of one
// cluster.

void cluster(const vertex_job& job, u32 instance, u32 number, classified& out) {
    const u32 begin = number * cluster_triangles,
              end = min_(begin + cluster_triangles, job.mesh.counts.triangle_count);
    const u32 first_id = instance * job.mesh.counts.triangle_count;
    const i32 width = job.view.width, height = job.view.height;
    const instance_record record = job.out.instances[instance];
    const bool listed = job.mesh.clusters[number].vertex_count != 0;
    listed_vertices vertices;
    alignas(64) u32 corners[batch_size];
    alignas(64) i32 first[batch_size];
    alignas(64) u32 instances[batch_size];
    alignas(64) u32 kind[batch_size];
    if (listed) transform_listed(vertices, job.mesh, job.view, record.clip, number);
    batch b;
    for (u32 start = begin; start < end; start += batch_size) {
        const u32 n = end - start < batch_size ? end - start : batch_size;
        for (u32 l = 0; l < batch_size; ++l) b.valid[l] = 1;
        if (listed) {
            for (u32 l = 0; l < batch_size; ++l)
                corners[l] = job.mesh.local_corners[start + (l < n ? l : 0U)];
            spread_listed(b, vertices, corners);
        } else {
            for (u32 l = 0; l < batch_size; ++l)
                first[l] = static_cast<i32>(start + (l < n ? l : 0U)) * 3, instances[l] = instance;
            gather_corners(b, job.mesh, job.view, job.out.instances, instances, first);
        }
        constexpr u32 small = static_cast<u32>(triangle_class::small),
                      large = static_cast<u32>(triangle_class::large), beyond = 5, bad = 4;
        u32 culled = 0, not_finite = 0, bad_index = 0;
        for (u32 l = 0; l < batch_size; ++l) {
            const u32 found =
                static_cast<u32>(classify(corner(b, 0, l), corner(b, 1, l), corner(b, 2, l), width, height));
            const u32 k = l < n ? (b.valid[l] != 0 ? found : bad) : beyond;
            kind[l] = k;
            culled += u32{k == static_cast<u32>(triangle_class::culled)};
            not_finite += u32{k == static_cast<u32>(triangle_class::not_finite)};
            bad_index += u32{k == bad};
        }
        out.culled += culled, out.not_finite += not_finite, out.bad_index += bad_index;
        u32 smalls = out.small_count, larges = out.large_count;
        for (u32 l = 0; l < n; ++l) {
            const u32 id = first_id + start + l;
            out.small[smalls] = id;
            out.large[larges] = id;
            smalls += u32{kind[l] == small};
            larges += u32{kind[l] == large};
        }
        out.small_count = smalls, out.large_count = larges;
    }
}
