#include "stages/geometry/mesh_data.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stages/sdk/configuration.hpp"

namespace carousel::stages {

void sphere_of_points::include(const f32 (&p)[3]) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
        low_[axis] = std::min(low_[axis], f64{p[axis]});
        high_[axis] = std::max(high_[axis], f64{p[axis]});
    }
}

void sphere_of_points::reach(const f32 (&p)[3]) {
    const auto offset = [&](std::size_t axis) { return p[axis] - centre(axis); };
    radius_ =
        std::max(radius_, std::sqrt(offset(0) * offset(0) + offset(1) * offset(1) + offset(2) * offset(2)));
}

f64 sphere_of_points::radius(const std::string& name) const {
    if (!(radius_ > 0))
        throw settings_error("mesh",
                             fmt::format("{}: all its points are equal: nothing can be rendered", name));
    return radius_;
}

unit_fit fit_unit_sphere(std::vector<mesh_vertex>& vertices, const std::string& name) {
    sphere_of_points sphere;
    for (const mesh_vertex& v : vertices) sphere.include(v.position);
    for (const mesh_vertex& v : vertices) sphere.reach(v.position);
    const f64 radius = sphere.radius(name);
    for (mesh_vertex& v : vertices)
        for (std::size_t axis = 0; axis < 3; ++axis)
            v.position[axis] = static_cast<f32>((v.position[axis] - sphere.centre(axis)) / radius);
    return {{sphere.centre(0), sphere.centre(1), sphere.centre(2)}, radius};
}

std::string facing_away(const mesh_data& mesh, const f32 (&eye)[3]) {
    f64 area[3] = {0, 0, 0}, area_sum = 0, volume = 0;
    bool against_normals = true, is_hidden = true, any = false;
    for (std::size_t t = 0; t + 2 < mesh.indices.size(); t += 3) {
        const mesh_vertex* corner[3];
        for (std::size_t k = 0; k < 3; ++k) corner[k] = &mesh.vertices[mesh.indices[t + k]];
        f64 u[3], v[3], n[3], length = 0, along_normals = 0, towards_eye = 0;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            u[axis] = f64{corner[1]->position[axis]} - corner[0]->position[axis];
            v[axis] = f64{corner[2]->position[axis]} - corner[0]->position[axis];
        }
        for (std::size_t axis = 0; axis < 3; ++axis) {
            n[axis] = u[(axis + 1) % 3] * v[(axis + 2) % 3] - u[(axis + 2) % 3] * v[(axis + 1) % 3];
            length += n[axis] * n[axis];
            volume += n[axis] * corner[0]->position[axis];
            area[axis] += n[axis];
            towards_eye += n[axis] * (f64{eye[axis]} - corner[0]->position[axis]);
            for (const mesh_vertex* c : corner) along_normals += n[axis] * c->normal[axis];
        }
        if (!(length > 0)) continue;
        any = true;
        area_sum += std::sqrt(length);
        against_normals = against_normals && along_normals < 0;
        is_hidden = is_hidden && !(towards_eye > 0);
    }
    constexpr f64 of_a_closed_one = 1e-6;  // the sum of the area vectors of a closed mesh is zero
    const f64 open = std::sqrt(area[0] * area[0] + area[1] * area[1] + area[2] * area[2]);
    if (!any) return "";
    if (against_normals) return "every triangle turns against its normals";
    if (open <= of_a_closed_one * area_sum && volume < -of_a_closed_one * area_sum)
        return "it is closed and inside out";
    if (is_hidden) return "the default camera sees only backs and edges";
    return "";
}

}  // namespace carousel::stages
