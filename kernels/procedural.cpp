#include "kernels/procedural.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"

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

}  // namespace carousel::kernels
