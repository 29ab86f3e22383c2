#include "stages/assets/obj_parts.hpp"

#include <algorithm>
#include <cmath>

namespace carousel::stages {
namespace {

struct point2 {
    f64 x = 0, y = 0;
    bool operator==(const point2&) const = default;
};

/// Twice the area of the triangle; > 0 if the corners are in counter-clockwise order.
f64 turn(const point2& a, const point2& b, const point2& c) {
    return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

/// Returns Newell's normal, which is a sum over the polygon's edges. It is exact even for concave polygons,
/// and approximate for polygons that are not planar.
point3 newell(std::span<const point3> p) {
    point3 n{};
    for (std::size_t k = 0; k < p.size(); ++k) {
        const point3& a = p[k];
        const point3& b = p[(k + 1) % p.size()];
        n[0] += (a[1] - b[1]) * (a[2] + b[2]);
        n[1] += (a[2] - b[2]) * (a[0] + b[0]);
        n[2] += (a[0] - b[0]) * (a[1] + b[1]);
    }
    return n;
}

/// Projects the polygon along the coordinate axis nearest to the polygon's normal, so that the projected
/// polygon is counter-clockwise.
std::vector<point2> project(std::span<const point3> corners) {
    const point3 n = newell(corners);
    std::size_t axis = 0;
    for (std::size_t k = 1; k < 3; ++k) axis = std::abs(n[k]) > std::abs(n[axis]) ? k : axis;
    const std::size_t x = (axis + 1) % 3, y = (axis + 2) % 3;
    const f64 side = n[axis] < 0 ? -1 : 1;
    std::vector<point2> out;
    for (const point3& p : corners) out.push_back({p[x] * side, p[y]});
    return out;
}

/// Clips ears one after another from the ring of remaining corners.
class ear_clipper {
public:
    explicit ear_clipper(std::vector<point2> points) : points_(std::move(points)) {
        const u32 n = static_cast<u32>(points_.size());
        for (u32 k = 0; k < n; ++k) {
            before_.push_back((k + n - 1) % n);
            after_.push_back((k + 1) % n);
        }
        for (u32 k = 0; k < n; ++k)
            if (corner(k) <= 0) blunt_.push_back(k);
    }

    [[nodiscard]] bool convex() const noexcept { return blunt_.empty(); }

    bool clip(u64& budget, std::vector<u32>& out) {
        u32 at = 0, tried = 0;
        std::size_t left = points_.size();
        while (left > 3) {
            // if edges cross or fold, there may be no ear; in that case any corner is clipped, so that the
            // loop ends
            const bool in_vain = tried >= left;
            if (budget < blunt_.size()) return false;
            budget -= blunt_.size();
            if (!in_vain && !is_ear(at)) {
                at = after_[at];
                ++tried;
                continue;
            }
            out.insert(out.end(), {before_[at], at, after_[at]});
            after_[before_[at]] = after_[at];
            before_[after_[at]] = before_[at];
            // After an ear the next corner is skipped: ears at adjacent corners would form a fan around one
            // corner, whose triangles have larger angles.
            at = after_[after_[at]];
            tried = 0;
            --left;
            // Clipping an ear leaves a sharp corner sharp, but it may make a blunt corner sharp. A corner
            // that was removed no longer prevents an ear.
            std::erase_if(blunt_, [&](u32 k) {
                return after_[before_[k]] != k || before_[after_[k]] != k || corner(k) > 0;
            });
        }
        out.insert(out.end(), {before_[at], at, after_[at]});
        return true;
    }

private:
    [[nodiscard]] f64 corner(u32 k) const {
        return turn(points_[before_[k]], points_[k], points_[after_[k]]);
    }

    /// True if the corner is sharp and its triangle contains no blunt corner. Corners that lie exactly at a
    /// corner of the triangle are ignored, because a polygon with a hole touches itself along a seam.
    [[nodiscard]] bool is_ear(u32 k) const {
        const point2 &a = points_[before_[k]], &b = points_[k], &c = points_[after_[k]];
        if (turn(a, b, c) <= 0) return false;
        return std::none_of(blunt_.begin(), blunt_.end(), [&](u32 other) {
            const point2& p = points_[other];
            return p != a && p != b && p != c && turn(a, b, p) >= 0 && turn(b, c, p) >= 0 &&
                   turn(c, a, p) >= 0;
        });
    }

    std::vector<point2> points_;
    std::vector<u32> before_, after_, blunt_;
};

f64 distance_squared(const point3& a, const point3& b) {
    return (a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]);
}

constexpr f64 least_cosine = 0.5;  ///< 60 degrees: the edges of a box stay sharp, and a coarse sphere appears
                                   ///< round
/// If a point has more triangles than this, the mean of all their normals is used, because comparing each
/// pair of triangles would take quadratic time.
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

bool triangulate(std::span<const point3> corners, u64& budget, std::vector<u32>& out) {
    if (corners.size() < 3) return true;
    if (corners.size() == 3) {
        out.insert(out.end(), {0, 1, 2});
        return true;
    }
    ear_clipper ears(project(corners));
    if (corners.size() == 4 && ears.convex()) {
        if (distance_squared(corners[0], corners[2]) < distance_squared(corners[1], corners[3]))
            out.insert(out.end(), {0, 1, 2, 0, 2, 3});
        else
            out.insert(out.end(), {0, 1, 3, 1, 2, 3});
        return true;
    }
    return ears.clip(budget, out);
}

void store_unit(const f64 (&n)[3], f32 (&to)[3]) {
    const f64 length = std::sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    const bool usable = length > 0 && std::isfinite(length);
    for (std::size_t axis = 0; axis < 3; ++axis) {
        to[axis] = usable ? static_cast<f32>(n[axis] / length) : (axis == 1 ? 1.0F : 0.0F);
    }
}

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
