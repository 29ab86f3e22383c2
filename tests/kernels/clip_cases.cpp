// Near plane, guard band, values that aren't finite, full queues: cases 4 and 7, through the vertex stage.
#include "tests/kernels/backend.hpp"
#include "tests/kernels/reference.hpp"

using namespace carousel;
using namespace carousel::kernels;
using namespace carousel::kernels::testing;

namespace {

constexpr u32 width = 120, height = 90;

struct world_mesh {
    std::vector<f32> positions;
    std::vector<u32> indices;
    [[nodiscard]] mesh_counts counts() const {
        return {static_cast<u32>(positions.size() / 3), static_cast<u32>(indices.size() / 3), 1, 1};
    }
};

/// A jittered sheet of triangles in the plane through `origin` spanned by u and v, seen from its front.
world_mesh sheet(u32 seed, const f32 (&origin)[3], const f32 (&u)[3], const f32 (&v)[3], u32 cells) {
    std::mt19937 random(seed);
    world_mesh m;
    for (u32 y = 0; y <= cells; ++y) {
        for (u32 x = 0; x <= cells; ++x) {
            const bool inner = x > 0 && y > 0 && x < cells && y < cells;
            const f32 s =
                (static_cast<f32>(x) + (inner ? static_cast<f32>(random() % 600) / 1000.0F - 0.3F : 0.0F)) /
                static_cast<f32>(cells);
            const f32 t =
                (static_cast<f32>(y) + (inner ? static_cast<f32>(random() % 600) / 1000.0F - 0.3F : 0.0F)) /
                static_cast<f32>(cells);
            for (u32 k = 0; k < 3; ++k) m.positions.push_back(origin[k] + s * u[k] + t * v[k]);
        }
    }
    for (u32 y = 0; y < cells; ++y) {
        for (u32 x = 0; x < cells; ++x) {
            const u32 a = y * (cells + 1) + x, b = a + 1, c = a + cells + 1, d = c + 1;
            m.indices.insert(m.indices.end(), {a, b, c, b, d, c});
        }
    }
    return m;
}

/// A chain with a mesh of its own, as the geometry stage would hand it on.
class world_chain {
public:
    world_chain(const world_mesh& mesh, u32 mode)
        : chain_(*tested().context, *tested().queue, {mesh_shape::bumpy_sphere, 0, width, height, 1},
                 lay_out_mesh(mesh.counts())),
          count_(mesh.counts().triangle_count) {
        std::vector<std::byte> block(chain_.layout().bytes);
        for (u64 i = 0; i < mesh.counts().vertex_count; ++i) {
            const f32* const p = mesh.positions.data() + 3 * i;
            store_vertex(block.data(), chain_.layout(), i, {{p[0], p[1], p[2]}, {}, {}});
        }
        std::memcpy(block.data() + chain_.layout().indices, mesh.indices.data(), mesh.indices.size() * 4);
        chain_.set_mesh(block);
        chain_.scene.shading = mode;
    }
    chain& operator*() { return chain_; }
    /// The number of times that each pixel is covered if each triangle is drawn by itself. Runs the vertex
    /// stage.
    std::vector<u32> coverage(raster_path path) {
        chain_.animate(0);
        chain_.vertex();
        triangle_counters counters{};
        std::vector<u32> list(count_), counts(u64{width} * height);
        chain_.set_triangles(list, counters);
        chain_.fragment(path);
        const std::vector<u32> empty = chain_.picture();
        for (u32 id = 0; id < count_; ++id) {
            list[count_ - 1] = id;
            counters.large = 1;
            chain_.set_triangles(list, counters);
            chain_.fragment(path);
            const std::vector<u32> one = chain_.picture();
            for (u64 i = 0; i < one.size(); ++i) counts[i] += one[i] != empty[i] ? 1 : 0;
        }
        return counts;
    }

private:
    chain chain_;
    u32 count_;
};

u64 count_of(const std::vector<u32>& counts, u32 value) {
    u64 n = 0;
    for (const u32 c : counts) n += c == value;
    return n;
}

}  // namespace

TEST_CASE("A floor that runs under and behind the camera covers each of its pixels once") {
    CAROUSEL_NEEDS_DEVICE();
    // 0.4 below the eye, from far in front to far behind: triangles with one, two and three corners behind
    // the near plane
    const world_mesh floor = sheet(3, {-30.0F, -0.4F, 30.0F}, {60.0F, 0.0F, 0.0F}, {0.0F, 0.0F, -60.0F}, 6);
    world_chain chain(floor, 2);
    (*chain).scene.spin = 0.0F;
    for (const raster_path path : all_paths) {
        const std::vector<u32> counts = chain.coverage(path);
        REQUIRE(count_of(counts, 0) + count_of(counts, 1) == counts.size());
        // below the horizon (seen from 0.4 above, 27 units away: 0.9 degrees) everything is floor
        for (u32 y = height / 2 + 3; y < height; ++y) {
            for (u32 x = 0; x < width; ++x) {
                CAPTURE(x, y, static_cast<int>(path));
                REQUIRE(counts[y * width + x] == 1);
            }
        }
    }
}

TEST_CASE("A floor close under the eye begins at the near plane and covers each pixel once") {
    CAROUSEL_NEEDS_DEVICE();
    // depth 0.03 to 1.03: the jitter puts many corners close to the near plane, on either side
    const world_mesh floor = sheet(11, {-3.0F, -0.02F, 2.57F}, {6.0F, 0.0F, 0.0F}, {0.0F, 0.0F, -1.0F}, 16);
    world_chain chain(floor, 2);
    // 0.02 below the eye at depth 0.1: this far below the middle, in units of half the height
    const f32 begin = 0.02F / 0.1F / 0.4227932F;
    for (const raster_path path : all_paths) {
        const std::vector<u32> counts = chain.coverage(path);
        for (u32 y = height / 2 + 4; y < height; ++y) {
            const f32 down = (static_cast<f32>(y) + 0.5F) / (0.5F * static_cast<f32>(height)) - 1.0F;
            if (down > begin - 0.02F && down < begin + 0.02F) continue;
            for (u32 x = 0; x < width; ++x) {
                CAPTURE(x, y, static_cast<int>(path));
                REQUIRE(counts[y * width + x] == (down < begin ? 1U : 0U));
            }
        }
    }
}

TEST_CASE("A wall far larger than the guard band covers every pixel once") {
    CAROUSEL_NEEDS_DEVICE();
    const f32 big = 1.0e5F;
    const world_mesh wall =
        sheet(5, {-big, big, 0.0F}, {2.0F * big, 0.0F, 0.0F}, {0.0F, -2.0F * big, 0.0F}, 5);
    world_mesh front = wall;
    for (u64 i = 0; i + 2 < front.indices.size(); i += 3)
        std::swap(front.indices[i + 1], front.indices[i + 2]);
    world_chain chain(front, 2);
    for (const raster_path path : all_paths) {
        const std::vector<u32> counts = chain.coverage(path);
        REQUIRE(count_of(counts, 1) == counts.size());
    }
}

TEST_CASE("A slanted wall that cuts the near plane and the guard band at once has no cracks") {
    CAROUSEL_NEEDS_DEVICE();
    for (u32 seed = 1; seed <= 5; ++seed) {
        const f32 tilt = 0.3F * static_cast<f32>(seed);
        world_mesh wall = sheet(seed, {-3000.0F, -0.5F - tilt, 2500.0F}, {6000.0F, 0.2F * tilt, 0.0F},
                                {0.0F, 0.0F, -5000.0F}, 5);
        world_chain chain(wall, 2);
        const std::vector<u32> counts = chain.coverage(raster_path::automatic);
        CAPTURE(seed);
        REQUIRE(count_of(counts, 0) + count_of(counts, 1) == counts.size());
        for (u32 x = 0; x < width; ++x) REQUIRE(counts[(height - 1) * width + x] == 1);
    }
}

TEST_CASE("Clipped triangles look the same through every tier, with light and texture") {
    CAROUSEL_NEEDS_DEVICE();
    for (const mesh_shape shape : {mesh_shape::bumpy_sphere, mesh_shape::torus_knots,
                                   mesh_shape::triangle_soup, mesh_shape::long_slivers}) {
        chain c(*on.context, *on.queue, {shape, 3000, 200, 150, 1});
        c.scene.camera.eye[2] = 0.95F;  // inside the bumps
        c.scene.camera.eye[0] = 0.2F;
        c.scene.camera.near = 0.2F;
        const std::vector<u32> picture = c.render(3);
        for (const raster_path path : all_paths) REQUIRE(differences(c.render(3, path), picture) == 0);
    }
}

TEST_CASE("Vertices that aren't finite drop their triangles and are counted, huge ones are clipped") {
    CAROUSEL_NEEDS_DEVICE();
    const f32 nan = body::float_of(0x7fc00000U), inf = body::float_of(0x7f800000U);
    world_mesh m;
    m.positions = {-0.5F, -0.5F, 0.0F, 0.5F, -0.5F, 0.0F, 0.0F,  0.5F,  0.0F,  // 0..2 a good triangle
                   nan,   0.0F,  0.0F, 0.0F, inf,   0.0F, 0.0F,  0.0F,  -inf,  // 3..5
                   1e30F, 0.0F,  0.0F, 0.0F, 1e30F, 0.0F, 3e38F, 3e38F, 3e38F};
    m.indices = {0, 1, 2, 0, 1, 3, 0, 1, 4, 0, 1, 5, 3, 4, 5, 0, 6, 7, 0, 1, 9, 0, 7, 6, 0, 1, 8};
    world_chain chain(m, 2);
    for (const raster_path path : all_paths) {
        (void)(*chain).render(0, path);
        const triangle_counters c = (*chain).counters();
        REQUIRE(c.bad_index == 1);   // vertex 9 doesn't exist
        REQUIRE(c.not_finite >= 4);  // and 3e38 may overflow on its way to the screen
        REQUIRE(c.small + c.large + c.culled + c.not_finite + c.bad_index == 9);
        REQUIRE(c.small + c.large >= 2);  // the good one and the huge one
    }
    const std::vector<u32> first = (*chain).render(0);
    for (const raster_path path : all_paths) REQUIRE(differences((*chain).render(0, path), first) == 0);
}

TEST_CASE("More large triangles than any queue holds are all drawn") {
    CAROUSEL_NEEDS_DEVICE();
    // each one is nearer than all before it and cuts off a little less: every one leaves a strip of its own
    // at the end
    triangle_set set;
    const u32 count = CAROUSEL_TEST_CUDA ? 60'000 : 12'000;
    for (u32 i = 0; i < count; ++i) {
        const i32 reach = 90000 - static_cast<i32>(i % 300) * 100;
        const f32 depth = 0.1F + 0.8F * static_cast<f32>(i) / static_cast<f32>(count);
        set.triangle(set.vertex(-256, -256, depth), set.vertex(-256, reach, depth),
                     set.vertex(reach, -256, depth));
    }
    const u32 w = sanitized ? 132 : 330, h = sanitized ? 80 : 200;
    screen_chain chain(*on.context, *on.queue, set, w, h, 2);
    const std::vector<u32> picture = chain.draw_all();
    // the expected owner of a pixel: the last (nearest) triangle that reaches it
    for (u32 y = 0; y < h; y += 7) {
        for (u32 x = 0; x < w; x += 5) {
            const point p{i64{x} * 256 + 128, i64{y} * 256 + 128};
            u32 owner = ~0U;
            for (u32 back = 1; back <= 300 && owner == ~0U; ++back) {
                const u32 id = count - back;
                const auto at = [&](u32 k) {
                    return point{set.vertices[set.indices[id * 3 + k]].x,
                                 set.vertices[set.indices[id * 3 + k]].y};
                };
                if (inside_edge(at(0), at(1), p) && inside_edge(at(1), at(2), p) &&
                    inside_edge(at(2), at(0), p))
                    owner = id;
            }
            CAPTURE(x, y);
            REQUIRE(picture[y * w + x] == (owner == ~0U ? body::background(x, y, h) : body::shade_id(owner)));
        }
    }
}
