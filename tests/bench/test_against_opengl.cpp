// Correctness case 8: compared with OpenGL in software. Triangle ids may differ only where the pixel's centre
// is within 1/128 pixel of an edge of one of the two triangles, or where both have equal depth; where they
// agree, colours are within 2/255.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "bench/peer.hpp"
#include "core/errors.hpp"
#include "kernels/body/shade.hpp"
#include "kernels/chain.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

using namespace carousel;
using namespace carousel::kernels;

namespace {

constexpr u32 width = 640, height = 360, frame = 7;
constexpr f64 near_edge_pixels = 1.0 / 128;
// of 1/w: a step of GL's 24-bit depth buffer with near 0.1 is 6e-7, float errors come on top
constexpr f64 equal_depth = 2e-6;
constexpr u32 nothing = ~0U;

struct point {
    f64 x, y, inverse_w;
};

/// The scene in double precision, from the same matrices.
class exact_scene {
public:
    explicit exact_scene(chain& c) : bytes_(c.mesh_bytes()), mesh_(view_mesh(c.layout(), bytes_.data())) {
        const body::matrix34 projection = body::view_projection(c.scene.camera, width, height);
        const std::vector<f32> model = c.models();
        for (u32 k = 0; k < 12; ++k) clip_[k] = body::product_element(projection, model.data(), k);
        for (u32 id = 0; id < mesh_.counts.triangle_count; ++id) by_color_.emplace(body::shade_id(id), id);
    }

    [[nodiscard]] point corner(u32 id, u32 k) const {
        const f32* const p = mesh_.positions + u64{mesh_.indices[u64{id} * 3 + k]} * 3;
        f64 c[3];
        for (u32 r = 0; r < 3; ++r)
            c[r] = f64{clip_[4 * r]} * p[0] + f64{clip_[4 * r + 1]} * p[1] + f64{clip_[4 * r + 2]} * p[2] +
                   clip_[4 * r + 3];
        return {(c[0] / c[2] + 1) * width / 2, (1 - c[1] / c[2]) * height / 2, 1 / c[2]};
    }

    /// Distance of a point to the nearest edge's segment, in pixels.
    [[nodiscard]] f64 edge_distance(u32 id, f64 x, f64 y) const {
        f64 least = 1e30;
        for (u32 k = 0; k < 3; ++k) {
            const point a = corner(id, k), b = corner(id, (k + 1) % 3);
            const f64 dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy;
            const f64 along =
                square == 0 ? 0 : std::clamp(((x - a.x) * dx + (y - a.y) * dy) / square, 0.0, 1.0);
            least = std::min(least, std::hypot(x - a.x - along * dx, y - a.y - along * dy));
        }
        return least;
    }

    /// 1/w of the triangle's plane at a point.
    [[nodiscard]] f64 depth(u32 id, f64 x, f64 y) const {
        const point a = corner(id, 0), b = corner(id, 1), c = corner(id, 2);
        const f64 area = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
        const f64 u = ((x - a.x) * (c.y - a.y) - (y - a.y) * (c.x - a.x)) / area,
                  v = ((b.x - a.x) * (y - a.y) - (b.y - a.y) * (x - a.x)) / area;
        return a.inverse_w + u * (b.inverse_w - a.inverse_w) + v * (c.inverse_w - a.inverse_w);
    }

    /// May the two renderers disagree at this pixel, ours showing the colour of an id and OpenGL the id
    /// `theirs`?
    [[nodiscard]] bool explained(u32 x, u32 y, u32 our_color, u32 theirs) const {
        const f64 px = x + 0.5, py = y + 0.5;
        if (theirs != nothing && edge_distance(theirs, px, py) < near_edge_pixels) return true;
        for (auto [at, end] = by_color_.equal_range(our_color); at != end; ++at) {
            if (edge_distance(at->second, px, py) < near_edge_pixels) return true;
            if (theirs != nothing &&
                std::abs(depth(at->second, px, py) - depth(theirs, px, py)) < equal_depth)
                return true;
        }
        return false;
    }

private:
    std::vector<std::byte> bytes_;
    mesh_view mesh_;
    f32 clip_[12];
    std::unordered_multimap<u32, u32> by_color_;
};

struct tally {
    u32 on_mesh = 0, differ = 0, unexplained = 0;
};

/// `shift`: OpenGL's picture is read this many pixels to the side; 0 unless the comparison itself is tested.
tally compare_ids(const exact_scene& scene, const std::vector<u32>& ours, const std::vector<u32>& theirs,
                  u32 shift = 0) {
    tally t;
    for (u32 y = 0; y < height; ++y) {
        for (u32 x = 0; x + shift < width; ++x) {
            const u32 id = theirs[u64{y} * width + x + shift], color = ours[u64{y} * width + x];
            const u32 empty = body::background(x, y, height);
            t.on_mesh += color != empty;
            if (color == (id == nothing ? empty : body::shade_id(id))) continue;
            ++t.differ;
            t.unexplained += !scene.explained(x, y, color, id);
        }
    }
    return t;
}

int channel_difference(u32 a, u32 b) {
    int most = 0;
    for (u32 shift = 0; shift < 24; shift += 8)
        most = std::max(most,
                        std::abs(static_cast<int>(a >> shift & 255U) - static_cast<int>(b >> shift & 255U)));
    return most;
}

}  // namespace

TEST_CASE("Against OpenGL, ids differ only at edges and equal depths, and colours by 2/255 at most") {
    std::unique_ptr<bench::peer> gl;
    try {
        gl = bench::open_opengl({.gpu = false, .ordinal = 0, .threads = 0, .same_filter = true});
    } catch (const device_error& e) {
        CAROUSEL_SKIP(e.what());
    }
    gl->resize(width, height);
    const auto context = device::open({device::device_kind::cpu, "", 0}, 2);
    const auto queue = context->make_queue();
    for (const auto& [shape, triangles] : {std::pair{mesh_shape::bumpy_sphere, 200U},
                                           {mesh_shape::bumpy_sphere, 60'000U},
                                           {mesh_shape::torus_knots, 20'000U},
                                           {mesh_shape::fractal_terrain, 5'000U}}) {
        chain c(*context, *queue, {shape, triangles, width, height, 1});
        const std::vector<u32> lit = c.render(frame);
        c.scene.shading = 2;
        const std::vector<u32> ours = c.render(frame);
        gl->load(c.layout(), c.mesh_bytes());
        const std::vector<u32> theirs = gl->ids(c.scene, c.models());
        (void)gl->draw(c.scene, c.models());
        const std::vector<u32> colors = gl->picture();
        const exact_scene scene(c);
        const tally t = compare_ids(scene, ours, theirs);
        CAPTURE(static_cast<int>(shape), triangles, t.on_mesh, t.differ, t.unexplained);
        REQUIRE(t.on_mesh > width * height / 20);
        REQUIRE(t.unexplained == 0);
        REQUIRE(t.differ < t.on_mesh / 50);
        // the comparison sees a shift by one pixel
        REQUIRE(compare_ids(scene, ours, theirs, 1).unexplained > 100);
        u32 off = 0;
        int most = 0;
        for (u64 i = 0; i < lit.size(); ++i) {
            if (theirs[i] == nothing || ours[i] != body::shade_id(theirs[i])) continue;
            const int d = channel_difference(lit[i], colors[i]);
            off += d > 2, most = std::max(most, d);
        }
        CAPTURE(off, most);
        REQUIRE(off == 0);
    }
}
