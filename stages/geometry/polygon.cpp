#include "stages/geometry/polygon.hpp"

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

/// Newell's normal: the sum over the edges; exact for concave polygons, approximate for non-planar ones.
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

/// Projects along the axis nearest to the normal, from the side from which the polygon turns left.
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
            // for crossing or folded edges: clips any corner, so that the loop ends
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
            at = after_[after_[at]];  // avoids a fan around one corner, which gives triangles with larger
                                      // angles
            tried = 0;
            --left;
            // A sharp corner stays sharp; a blunt corner may have become sharp, and a removed corner no
            // longer blocks an ear.
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

    /// True if the corner is sharp and its triangle contains no blunt corner. Points at the triangle's own
    /// corners do not count, because polygons with a hole touch themselves along a seam.
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

}  // namespace carousel::stages
