#include "stages/geometry/mesh_data.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "stages/settings.hpp"

namespace carousel::stages {

void store_unit(const f64 (&n)[3], f32 (&to)[3]) {
    const f64 length = std::sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    const bool usable = length > 0 && std::isfinite(length);
    for (std::size_t axis = 0; axis < 3; ++axis) {
        to[axis] = usable ? static_cast<f32>(n[axis] / length) : (axis == 1 ? 1.0F : 0.0F);
    }
}

void fit_unit_sphere(std::vector<mesh_vertex>& vertices, const std::string& name) {
    constexpr f64 infinity = std::numeric_limits<f64>::infinity();
    f64 low[3] = {infinity, infinity, infinity};
    f64 high[3] = {-infinity, -infinity, -infinity};
    for (const mesh_vertex& v : vertices) {
        for (std::size_t axis = 0; axis < 3; ++axis) {
            low[axis] = std::min(low[axis], f64{v.position[axis]});
            high[axis] = std::max(high[axis], f64{v.position[axis]});
        }
    }
    f64 radius = 0;
    const auto offset = [&](const mesh_vertex& v, std::size_t axis) { return v.position[axis] - (low[axis] + high[axis]) / 2; };
    for (const mesh_vertex& v : vertices) {
        radius = std::max(radius, std::sqrt(offset(v, 0) * offset(v, 0) + offset(v, 1) * offset(v, 1) + offset(v, 2) * offset(v, 2)));
    }
    if (!(radius > 0)) {
        throw settings_error("mesh", fmt::format("{}: all its points are one point: there is nothing to see", name));
    }
    for (mesh_vertex& v : vertices) {
        const f64 moved[3] = {offset(v, 0), offset(v, 1), offset(v, 2)};
        for (std::size_t axis = 0; axis < 3; ++axis) {
            v.position[axis] = static_cast<f32>(moved[axis] / radius);
        }
    }
}

}  // namespace carousel::stages
