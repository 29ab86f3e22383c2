#pragma once
// Counts of a procedural mesh from its shape and the requested number of triangles; shared by both backends.

#include "kernels/body/mesh.hpp"
#include "kernels/kernels.hpp"

namespace carousel::kernels {

struct procedural_mesh {
    mesh_counts counts;
    body::shape_grid grid;
};

/// Throws config_error above 2^29 triangles.
[[nodiscard]] procedural_mesh describe_procedural(mesh_shape shape, u32 triangles);

}  // namespace carousel::kernels
