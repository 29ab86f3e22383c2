#include "kernels/assets.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/errors.hpp"
#include "kernels/body/srgb.hpp"
#include "kernels/mesh_layout.hpp"

namespace carousel::kernels {
namespace {

/// Integer square root, rounded down.
u32 root(u64 x) {
    u64 r = 0;
    for (u64 bit = 1ULL << 31; bit != 0; bit >>= 1) {
        if ((r + bit) * (r + bit) <= x) r += bit;
    }
    return static_cast<u32>(r);
}

constexpr f64 full = 65535.0;

struct linear_tables {
    u32 linear[256];      ///< the linear value of each code: 0..65535
    u32 code_below[255];  ///< element c is the largest linear value that is converted to code c or to a lower
                          ///< code
};

constexpr linear_tables make_tables() {
    linear_tables t{};
    for (u32 c = 0; c < 256; ++c)
        t.linear[c] = static_cast<u32>(body::srgb_to_linear(c / 255.0) * full + 0.5);
    for (u32 c = 0; c < 255; ++c)
        t.code_below[c] = static_cast<u32>(body::srgb_to_linear((c + 0.5) / 255.0) * full);
    return t;
}
constexpr linear_tables tables = make_tables();

u32 code_of(u64 linear) {
    return static_cast<u32>(std::lower_bound(tables.code_below, tables.code_below + 255, linear) -
                            tables.code_below);
}

/// The texels of the previous level that one texel of the next level covers along one axis: `count` texels
/// from `first` on. Their weights are in units of 1 / coarse.
struct coverage {
    u32 first, count;
    u64 weight[3];
};
coverage covered(u32 fine, u32 coarse, u32 at) {
    const u64 begin = static_cast<u64>(at) * fine, end = begin + fine;
    coverage c{static_cast<u32>(begin / coarse), 0, {}};
    for (u64 s = c.first; s * coarse < end; ++s)
        c.weight[c.count++] = std::min((s + 1) * coarse, end) - std::max(s * coarse, begin);
    return c;
}

/// `colors`: how many channels are sRGB, from the first one on; the others are averaged as they are.
u32 mean(const u32* fine, u32 fine_width, const coverage& across, const coverage& down, u32 colors) {
    u64 sum[4] = {}, total = 0;
    for (u32 y = 0; y < down.count; ++y) {
        for (u32 x = 0; x < across.count; ++x) {
            const u32 texel = fine[static_cast<u64>(down.first + y) * fine_width + across.first + x];
            const u64 weight = across.weight[x] * down.weight[y];
            total += weight;
            for (u32 k = 0; k < 4; ++k) {
                const u32 code = texel >> (8 * k) & 255U;
                sum[k] += weight * (k < colors ? tables.linear[code] : code);
            }
        }
    }
    u32 out = 0;
    for (u32 k = 0; k < 4; ++k) {
        const u64 middle = (sum[k] + total / 2) / total;
        out |= (k < colors ? code_of(middle) : static_cast<u32>(middle)) << (8 * k);
    }
    return out;
}

void build_levels(u32* texels, u32 width, u32 height, u32 levels, u32 colors) {
    const u32* fine = texels;
    for (u32 level = 1; level < levels; ++level) {
        const u32 fine_width = level_side(width, level - 1), fine_height = level_side(height, level - 1);
        const u32 columns = level_side(width, level), rows = level_side(height, level);
        u32* const coarse = texels + texture_texels(width, height, level);
        for (u32 y = 0; y < rows; ++y) {
            const coverage down = covered(fine_height, rows, y);
            for (u32 x = 0; x < columns; ++x)
                coarse[static_cast<u64>(y) * columns + x] =
                    mean(fine, fine_width, covered(fine_width, columns, x), down, colors);
        }
        fine = coarse;
    }
}

}  // namespace

const std::vector<std::string>& mesh_shape_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const mesh_shape_row& row : mesh_shapes) all.emplace_back(row.name);
        return all;
    }();
    return names;
}

mesh_shape mesh_shape_from(std::string_view name) {
    for (const mesh_shape_row& row : mesh_shapes) {
        if (row.name == name) return row.shape;
    }
    throw config_error(
        fmt::format("unknown mesh '{}'; known are {}", name, fmt::join(mesh_shape_names(), ", ")));
}

procedural_mesh describe_procedural(mesh_shape shape, u32 triangles) {
    if (triangles > 1U << 29) {
        throw config_error(
            fmt::format("a mesh of {} triangles was requested; the largest has {}", triangles, 1U << 29));
    }
    const auto at_least = [](u32 x, u32 least) { return x < least ? least : x; };
    body::shape_grid g{shape, 1, 1, 1};
    switch (shape) {
        case mesh_shape::bumpy_sphere:
            g.nv = at_least(root(triangles / 4), 2);
            g.nu = 2 * g.nv;
            return {{(g.nu + 1) * (g.nv + 1), 2 * g.nu * g.nv, 1024, 512}, g};
        case mesh_shape::fractal_terrain:
            g.nu = g.nv = at_least(root(triangles / 2), 2);
            return {{(g.nu + 1) * (g.nv + 1), 2 * g.nu * g.nv, 1024, 1024}, g};
        case mesh_shape::torus_knots:
            g.nv = at_least(root(triangles / 48), 3);
            g.nu = 12 * g.nv;
            g.parts = 2;
            return {{2 * (g.nu + 1) * (g.nv + 1), 4 * g.nu * g.nv, 256, 16}, g};
        case mesh_shape::quad_stack:
        case mesh_shape::quad_stack_front_first:
            g.parts = at_least(triangles / 2, 1);
            return {{4 * g.parts, 2 * g.parts, 256, 256}, g};
        default:
            g.parts = at_least(triangles, 1);
            return {{3 * g.parts, g.parts, 64, 64}, g};
    }
}

mesh_counts procedural_counts(mesh_shape shape, u32 triangles) {
    return describe_procedural(shape, triangles).counts;
}

void build_mip_chain(u32* texels, u32 width, u32 height, u32 levels) {
    build_levels(texels, width, height, levels, 3);
}

void build_linear_mip_chain(u32* texels, u32 width, u32 height, u32 levels) {
    build_levels(texels, width, height, levels, 0);
}

void tint_texels(u32* texels, u64 count, const f32 (&factor)[3]) {
    u8 to[3][256];
    for (u32 k = 0; k < 3; ++k) {
        const f64 f = factor[k] > 0.0F ? (factor[k] < 1.0F ? f64{factor[k]} : 1.0) : 0.0;  // NaN: 0
        for (u32 c = 0; c < 256; ++c)
            to[k][c] = static_cast<u8>(code_of(static_cast<u64>(tables.linear[c] * f + 0.5)));
    }
    for (u64 i = 0; i < count; ++i) {
        const u32 t = texels[i];
        texels[i] = to[0][t & 255U] | static_cast<u32>(to[1][t >> 8 & 255U]) << 8 |
                    static_cast<u32>(to[2][t >> 16 & 255U]) << 16 | (t & 0xff000000U);
    }
}

}  // namespace carousel::kernels
