// Finds the parts on the screen of triangles that are not opaque, and sorts them into tiles.
#include "kernels/body/non_opaque.hpp"

#include "device/cpu/pool.hpp"
#include "kernels/cpu/shade_entries.hpp"

namespace carousel::kernels::cpu {
namespace {

template <typename Use>
void each_tile(const fragment_job& job, u32 scale, const body::pixel_box& box, const Use& use) {
    const u32 width = tile_width / scale, height = tile_height / scale;
    const u32 last_x = static_cast<u32>(box.x1) / width, last_y = static_cast<u32>(box.y1) / height;
    for (u32 y = static_cast<u32>(box.y0) / height; y <= last_y; ++y)
        for (u32 x = static_cast<u32>(box.x0) / width; x <= last_x; ++x) use(y * job.tiles_x + x);
}

}  // namespace

non_opaque_parts find_non_opaque_parts(device::cpu::pool& pool, const fragment_job& job,
                                       const body::viewport& view, u32 first, u32 count) {
    const body::surface_job& surface = *job.surface;
    const u32 per_instance = body::non_opaque_count(job.mesh.counts),
              instances = body::min_(job.in.counters->instance_count, job.in.max_instances);
    const u64 all = u64{instances} * count;
    constexpr u64 chunk = 1024;
    std::vector<std::vector<special_triangle>> found((all + chunk - 1) / chunk);
    pool.parallel_for(found.size(), 1, [&](u64 begin, u64 end, unsigned) {
        for (u64 i = begin * chunk; i < body::min_(end * chunk, all); ++i) {
            const u32 id = static_cast<u32>(job.id_limit + i / count * per_instance + first + i % count);
            const body::screen_parts parts = body::parts_of(surface, view, id);
            for (u32 k = 0; k < parts.count; ++k)
                found[i / chunk].push_back(
                    {parts.part[k], id, body::box_of(parts.part[k], view.width, view.height)});
        }
    });
    const u32 scale = static_cast<u32>(job.view.width / view.width);
    non_opaque_parts out;
    for (const auto& each : found) out.parts.insert(out.parts.end(), each.begin(), each.end());
    out.begin.assign(u64{job.tiles_x} * job.tiles_y + 1, 0);
    for (const special_triangle& part : out.parts)
        each_tile(job, scale, part.box, [&](u32 tile) { ++out.begin[tile + 1]; });
    for (std::size_t tile = 1; tile < out.begin.size(); ++tile) out.begin[tile] += out.begin[tile - 1];
    out.places.resize(out.begin.back());
    std::vector<u32> next(out.begin.begin(), out.begin.end() - 1);
    for (u32 i = 0; i < out.parts.size(); ++i)
        each_tile(job, scale, out.parts[i].box, [&](u32 tile) { out.places[next[tile]++] = i; });
    return out;
}

}  // namespace carousel::kernels::cpu
