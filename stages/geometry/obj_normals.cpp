#include "stages/geometry/obj_normals.hpp"

#include <cmath>

namespace carousel::stages {
namespace {

constexpr f64 least_cosine = 0.5;  ///< 60 degrees: the edges of a box stay sharp, and a coarse sphere appears
                                   ///< round
/// A point with more triangles than this uses the mean of all of them, because comparing each pair would take
/// quadratic time.
constexpr u32 most_compared = 256;

point3 cross_product(const point3& p, const point3& q, const point3& r) {
    const point3 u{q[0] - p[0], q[1] - p[1], q[2] - p[2]};
    const point3 v{r[0] - p[0], r[1] - p[1], r[2] - p[2]};
    return {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
}

f64 dot(const point3& a, const point3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

void add(point3& to, const point3& n) {
    for (std::size_t axis = 0; axis < 3; ++axis) to[axis] += n[axis];
}

bool is_zero(const point3& n) { return n[0] == 0 && n[1] == 0 && n[2] == 0; }

}  // namespace

std::vector<point3> corner_normals(std::span<const point3> points, std::span<const u32> point_of_corner,
                                   const smoothing& how) {
    const std::size_t triangles = point_of_corner.size() / 3;
    std::vector<point3> plane(triangles), of_point(points.size());
    std::vector<u32> first(points.size() + 1);  // start of each point's triangles in `around`
    for (std::size_t t = 0; t < triangles; ++t) {
        const u32* const c = &point_of_corner[3 * t];
        plane[t] = cross_product(points[c[0]], points[c[1]], points[c[2]]);
        for (std::size_t k = 0; k < 3; ++k) add(of_point[c[k]], plane[t]), ++first[c[k] + 1];
    }
    for (std::size_t p = 0; p < points.size(); ++p) first[p + 1] += first[p];
    std::vector<u32> around(point_of_corner.size()), filled(first.begin(), first.end() - 1);
    for (std::size_t c = 0; c < 3 * triangles; ++c)
        around[filled[point_of_corner[c]]++] = static_cast<u32>(c / 3);

    const auto smooth = [&](std::size_t t, std::size_t u) {
        if (how.by_group) return how.group[t] == how.group[u];
        return dot(plane[t], plane[u]) >=
               least_cosine * std::sqrt(dot(plane[t], plane[t]) * dot(plane[u], plane[u]));
    };
    std::vector<point3> out(3 * triangles);
    for (std::size_t c = 0; c < out.size(); ++c) {
        const std::size_t t = c / 3;
        const u32 p = point_of_corner[c];
        if (how.by_group && how.group[t] == 0) {
            out[c] = plane[t];
        } else if (first[p + 1] - first[p] <= most_compared) {
            for (u32 k = first[p]; k < first[p + 1]; ++k)
                if (around[k] == t || smooth(t, around[k])) add(out[c], plane[around[k]]);
        }
        if (is_zero(out[c])) out[c] = of_point[p];
    }
    return out;
}

}  // namespace carousel::stages
