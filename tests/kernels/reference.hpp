#pragma once
// A second rasteriser, as plain as can be: every pixel against every triangle, 64-bit integers, no boxes, no
// tiles, no bins. Written from the rules (8 subpixel bits, top-left, key = depth then id), not from the
// kernels.

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/body/setup.hpp"
#include "kernels/body/shade.hpp"
#include "kernels/chain.hpp"

namespace carousel::kernels::testing {

struct point {
    i64 x, y;
};
struct vec3_position {
    f32 x, y, w;
};

/// Is the pixel centre left of the directed edge a -> b in a y-up view, or on it and the edge is a top or
/// left one of a triangle that lies to its left? (y points down in the data, so it is negated here.)
inline bool inside_edge(point a, point b, point p) {
    const i64 ux = b.x - a.x, uy = -(b.y - a.y), px = p.x - a.x, py = -(p.y - a.y);
    const i64 cross = ux * py - uy * px;
    if (cross != 0) return cross > 0;
    const bool left_edge = uy < 0;            // counter-clockwise: the left side is walked downwards
    const bool top_edge = uy == 0 && ux < 0;  // and the top side to the left
    return left_edge || top_edge;
}
inline i64 twice_area(point a, point b, point c) {
    return -((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x));
}

struct reference {
    u32 width, height;
    std::vector<u64> keys;
    reference(u32 w, u32 h) : width(w), height(h), keys(u64{w} * h, ~0ULL) {}

    void draw(u32 id, const screen_vertex& v0, const screen_vertex& v1, const screen_vertex& v2) {
        const point a{v0.x, v0.y}, b{v1.x, v1.y}, c{v2.x, v2.y};
        const i64 area = twice_area(a, b, c);  // counter-clockwise seen with y up is the front
        if (area <= 0) return;
        for (u32 y = 0; y < height; ++y) {
            for (u32 x = 0; x < width; ++x) {
                const point p{i64{x} * 256 + 128, i64{y} * 256 + 128};
                if (!inside_edge(a, b, p) || !inside_edge(b, c, p) || !inside_edge(c, a, p)) continue;
                // the depth's formula: first the third vertex' share, then the second's
                const f32 inverse = 1.0F / static_cast<f32>(area);
                const f32 share2 = static_cast<f32>(twice_area(a, b, p)) * inverse,
                          share1 = static_cast<f32>(twice_area(c, a, p)) * inverse;
                const f32 depth = std::fma(share1, v1.inverse_w - v0.inverse_w,
                                           std::fma(share2, v2.inverse_w - v0.inverse_w, v0.inverse_w));
                u32 bits;
                const f32 shown = depth > 0.0F ? depth : 0.0F;
                std::memcpy(&bits, &shown, 4);
                const u64 key = u64{~bits} << 32 | id;
                u64& at = keys[u64{y} * width + x];
                if (key < at) at = key;
            }
        }
    }
    /// The result of shading modes 2 (ids) and 3 (depth).
    [[nodiscard]] std::vector<u32> picture(u32 mode) const {
        std::vector<u32> out(keys.size());
        for (u64 i = 0; i < keys.size(); ++i) {
            const u32 x = static_cast<u32>(i % width), y = static_cast<u32>(i / width);
            f32 depth;
            const u32 bits = ~static_cast<u32>(keys[i] >> 32);
            std::memcpy(&depth, &bits, 4);
            out[i] = keys[i] == ~0ULL
                         ? body::background(x, y, height)
                         : (mode == 2 ? body::shade_id(static_cast<u32>(keys[i])) : body::shade_depth(depth));
        }
        return out;
    }
};

/// Triangles wished for on the screen: corners of clip space that come to lie there (on_screen() says where
/// exactly).
struct triangle_set {
    struct vertex_spec {
        i32 x, y;
        f32 inverse_w;
    };
    std::vector<vertex_spec> vertices;
    std::vector<u32> indices;

    u32 vertex(i32 x, i32 y, f32 inverse_w = 0.5F) {
        vertices.push_back({x, y, inverse_w});
        return static_cast<u32>(vertices.size() - 1);
    }
    /// Clip space position of a vertex, to be taken by identity().
    [[nodiscard]] vec3_position position(u32 i, u32 width, u32 height) const {
        const f64 half_x = 128.0 * width, half_y = 128.0 * height;
        const f32 w = 1.0F / vertices[i].inverse_w;
        return {static_cast<f32>((vertices[i].x - half_x) / half_x * w),
                static_cast<f32>((half_y - vertices[i].y) / half_y * w), w};
    }
    /// The result of both stages: the requested position within some ten thousand pixels, a position off by a
    /// subpixel outside.
    [[nodiscard]] screen_vertex on_screen(u32 i, u32 width, u32 height) const {
        const vec3_position p = position(i, width, height);
        return body::transform_vertex(identity().clip, {p.x, p.y, p.w},
                                      body::make_viewport(width, height, 0.1F));
    }
    /// The matrix that takes (x, y, w) to itself.
    static instance_record identity() {
        instance_record r{};
        r.clip[0] = r.clip[5] = r.clip[10] = 1.0F;
        r.model[0] = r.model[5] = r.model[10] = 1.0F;
        return r;
    }
    void triangle(u32 a, u32 b, u32 c) { indices.insert(indices.end(), {a, b, c}); }
    [[nodiscard]] u32 count() const { return static_cast<u32>(indices.size() / 3); }
};

/// A chain on `on` whose fragment stage will draw these triangles.
class screen_chain {
public:
    screen_chain(device::context& context, device::queue& queue, const triangle_set& set, u32 width,
                 u32 height, u32 mode)
        : set_(set),
          width_(width),
          height_(height),
          chain_(context, queue, {mesh_shape::bumpy_sphere, 0, width, height, 1},
                 lay_out_mesh({static_cast<u32>(set.vertices.size()), set.count(), 1, 1})) {
        std::vector<std::byte> block(chain_.layout().bytes);
        std::memcpy(block.data() + chain_.layout().indices, set.indices.data(), set.indices.size() * 4);
        for (u32 i = 0; i < set.vertices.size(); ++i) {
            const vec3_position p = set.position(i, width, height);
            store_vertex(block.data(), chain_.layout(), i, {{p.x, p.y, p.w}, {}, {}});
        }
        chain_.set_mesh(block);
        chain_.set_instances({triangle_set::identity()});
        chain_.scene.shading = mode;
    }
    /// Draws the triangles of `order` (ids).
    std::vector<u32> draw(const std::vector<u32>& order, raster_path path = raster_path::automatic) {
        std::vector<u32> list(set_.count());
        u32 small = 0, large = 0;
        for (const u32 id : order) {
            const auto at = [&](u32 k) { return set_.on_screen(set_.indices[id * 3 + k], width_, height_); };
            const bool fits = body::classify(at(0), at(1), at(2), static_cast<i32>(width_),
                                             static_cast<i32>(height_)) == body::triangle_class::small;
            if (fits)
                list[small++] = id;
            else
                list[list.size() - 1 - large++] = id;
        }
        triangle_counters counters{};
        counters.small = small, counters.large = large, counters.instance_count = 1;
        chain_.set_triangles(list, counters);
        chain_.fragment(path);
        return chain_.picture();
    }
    std::vector<u32> draw_all(raster_path path = raster_path::automatic) {
        std::vector<u32> order(set_.count());
        for (u32 i = 0; i < order.size(); ++i) order[i] = i;
        return draw(order, path);
    }
    /// The number of triangles that cover each pixel; each one is drawn by itself.
    std::vector<u32> coverage(raster_path path = raster_path::automatic) {
        const std::vector<u32> empty = draw({}, path);
        std::vector<u32> counts(empty.size());
        for (u32 id = 0; id < set_.count(); ++id) {
            const std::vector<u32> one = draw({id}, path);
            for (u64 i = 0; i < one.size(); ++i) counts[i] += one[i] != empty[i] ? 1 : 0;
        }
        return counts;
    }
    chain& operator*() { return chain_; }

private:
    const triangle_set& set_;
    u32 width_, height_;
    chain chain_;
};

inline reference reference_of(const triangle_set& set, u32 width, u32 height) {
    reference r(width, height);
    for (u32 id = 0; id < set.count(); ++id) {
        const auto at = [&](u32 k) { return set.on_screen(set.indices[id * 3 + k], width, height); };
        r.draw(id, at(0), at(1), at(2));
    }
    return r;
}

/// Pixels in which two pictures differ.
inline u64 differences(const std::vector<u32>& a, const std::vector<u32>& b) {
    u64 n = a.size() == b.size() ? 0 : ~0ULL;
    for (u64 i = 0; n != ~0ULL && i < a.size(); ++i) n += a[i] != b[i];
    return n;
}

/// The same on every standard library, unlike std distributions.
inline i32 random_in(std::mt19937& random, i32 low, i32 high) {
    return low + static_cast<i32>(random() % static_cast<u32>(high - low + 1));
}

}  // namespace carousel::kernels::testing
