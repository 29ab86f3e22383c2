// Fill rule, random triangles against the reference, slivers, tiers, depth: cases 1, 2, 3 and 5.
#include <algorithm>

#include "tests/kernels/backend.hpp"
#include "tests/kernels/reference.hpp"

using namespace carousel;
using namespace carousel::kernels;
using namespace carousel::kernels::testing;

namespace {

constexpr u32 width = 96, height = 80;

/// A fan around a middle, closed; its outline is a jittered circle.
triangle_set jittered_fan(u32 seed, i32 cx, i32 cy, i32 radius, u32 corners) {
    std::mt19937 random(seed);
    triangle_set set;
    const u32 middle = set.vertex(cx, cy);
    for (u32 i = 0; i < corners; ++i) {
        const body::sine_cosine t = body::sine_and_cosine(6.283185307179586 * i / corners);
        const f64 r = radius * (0.7 + 0.3 * (random() % 1000) / 1000.0);
        set.vertex(cx + static_cast<i32>(r * t.cosine), cy - static_cast<i32>(r * t.sine));
    }
    for (u32 i = 0; i < corners; ++i) set.triangle(middle, 1 + i, 1 + (i + 1) % corners);
    return set;
}

/// A grid over [x0, x1) x [y0, y1) subpixels whose inner vertices are moved about; `snap` puts vertices on
/// pixel centres often.
triangle_set jittered_grid(u32 seed, i32 x0, i32 y0, i32 cell, u32 columns, u32 rows, bool snap) {
    std::mt19937 random(seed);
    triangle_set set;
    for (u32 y = 0; y <= rows; ++y) {
        for (u32 x = 0; x <= columns; ++x) {
            const bool inner = x > 0 && y > 0 && x < columns && y < rows;
            i32 px = x0 + static_cast<i32>(x) * cell, py = y0 + static_cast<i32>(y) * cell;
            if (inner)
                px += random_in(random, -cell / 3, cell / 3), py += random_in(random, -cell / 3, cell / 3);
            if (inner && snap) px = (px & ~255) + 128, py = (py & ~127);
            set.vertex(px, py);
        }
    }
    for (u32 y = 0; y < rows; ++y) {
        for (u32 x = 0; x < columns; ++x) {
            const u32 a = y * (columns + 1) + x, b = a + 1, c = a + columns + 1, d = c + 1;
            if (random() & 1U) {
                set.triangle(a, c, b), set.triangle(b, c, d);
            } else {
                set.triangle(a, c, d), set.triangle(a, d, b);
            }
        }
    }
    return set;
}

triangle_set random_triangles(u32 seed, u32 count, i32 spread, bool slivers) {
    std::mt19937 random(seed);
    triangle_set set;
    for (u32 i = 0; i < count; ++i) {
        const i32 cx = random_in(random, -4000, 28000), cy = random_in(random, -4000, 24000);
        const i32 size = 16 << (random() % 4) * 3;
        const i32 reach = std::min(size, spread);
        u32 v[3];
        for (u32& x : v) {
            x = set.vertex(cx + random_in(random, -reach, reach), cy + random_in(random, -reach, reach),
                           0.1F + static_cast<f32>(random() % 900) / 1000.0F);
        }
        if (slivers) {
            // the third corner on (or next to) the line through the others, or equal to one of them
            const triangle_set::vertex_spec &p = set.vertices[v[0]], &q = set.vertices[v[1]];
            const i32 t = random_in(random, -300, 300);
            set.vertices[v[2]].x = p.x + (q.x - p.x) * t / 256 + random_in(random, -1, 1);
            set.vertices[v[2]].y = p.y + (q.y - p.y) * t / 256 + random_in(random, -1, 1);
        }
        set.triangle(v[0], v[1], v[2]);
    }
    return set;
}

void require_reference(const triangle_set& set) {
    auto& on = tested();
    const reference r = reference_of(set, width, height);
    for (const u32 mode : {2U, 3U}) {
        screen_chain chain(*on.context, *on.queue, set, width, height, mode);
        const std::vector<u32> expected = r.picture(mode);
        for (const raster_path path : all_paths) {
            CAPTURE(mode, static_cast<int>(path));
            REQUIRE(differences(chain.draw_all(path), expected) == 0);
        }
    }
}

}  // namespace

TEST_CASE("A jittered fan covers every pixel at most once, and without a hole around its middle") {
    CAROUSEL_NEEDS_DEVICE();
    for (u32 seed = 1; seed <= 6; ++seed) {
        // one fan lies across the picture's corner, one has its middle on a pixel's centre
        const i32 cx = seed == 1 ? 0 : (seed == 2 ? 48 * 256 + 128 : 12000 + static_cast<i32>(seed) * 37);
        const triangle_set fan = jittered_fan(seed, cx, 10000, 9000, 24);
        screen_chain chain(*on.context, *on.queue, fan, width, height, 2);
        const std::vector<u32> counts = chain.coverage();
        const i64 safe = 5500;  // inside the shortest radius
        for (u32 y = 0; y < height; ++y) {
            for (u32 x = 0; x < width; ++x) {
                const i64 dx = i64{x} * 256 + 128 - cx, dy = i64{y} * 256 + 128 - 10000;
                CAPTURE(seed, x, y);
                if (dx * dx + dy * dy < safe * safe) REQUIRE(counts[y * width + x] == 1);
                REQUIRE(counts[y * width + x] <= 1);
            }
        }
    }
}

TEST_CASE("A jittered grid covers each pixel once, also with vertices on pixel centres") {
    CAROUSEL_NEEDS_DEVICE();
    for (u32 seed = 1; seed <= 4; ++seed) {
        // the area's edges run through pixel centres: top and left ones belong to it, bottom and right ones
        // don't
        const i32 x0 = 5 * 256 + 128, y0 = 4 * 256 + 128, cell = 8 * 256;
        const triangle_set grid = jittered_grid(seed, x0, y0, cell, 9, 7, seed % 2 == 0);
        screen_chain chain(*on.context, *on.queue, grid, width, height, 2);
        for (const raster_path path : {raster_path::automatic, raster_path::large}) {
            const std::vector<u32> counts = chain.coverage(path);
            for (u32 y = 0; y < height; ++y) {
                for (u32 x = 0; x < width; ++x) {
                    const bool inside = x >= 5 && x < 5 + 72 && y >= 4 && y < 4 + 56;
                    CAPTURE(seed, x, y);
                    REQUIRE(counts[y * width + x] == (inside ? 1U : 0U));
                }
            }
        }
    }
}

TEST_CASE("A regular grid of two-pixel cells with edges through pixel centres covers each pixel once") {
    CAROUSEL_NEEDS_DEVICE();
    triangle_set grid;
    const u32 cells = 8;
    for (u32 y = 0; y <= cells; ++y) {
        for (u32 x = 0; x <= cells; ++x)
            grid.vertex(static_cast<i32>(x * 512 + 60 * 256 + 128),
                        static_cast<i32>(y * 512 + 28 * 256 + 128));
    }
    for (u32 y = 0; y < cells; ++y) {
        for (u32 x = 0; x < cells; ++x) {
            const u32 a = y * (cells + 1) + x, b = a + 1, c = a + cells + 1, d = c + 1;
            grid.triangle(a, c, b), grid.triangle(b, c, d);
        }
    }
    screen_chain chain(*on.context, *on.queue, grid, width, height, 2);
    for (const raster_path path : all_paths) {
        const std::vector<u32> counts = chain.coverage(path);
        for (u32 y = 0; y < height; ++y) {
            for (u32 x = 0; x < width; ++x) {
                CAPTURE(x, y, static_cast<int>(path));
                REQUIRE(counts[y * width + x] == (x >= 60 && x < 76 && y >= 28 && y < 44 ? 1U : 0U));
            }
        }
    }
}

TEST_CASE("Back faces, reversed fans and triangles without area draw nothing") {
    CAROUSEL_NEEDS_DEVICE();
    triangle_set fan = jittered_fan(9, 12000, 10000, 9000, 24);
    for (u32 i = 0; i < fan.count(); ++i) std::swap(fan.indices[i * 3 + 1], fan.indices[i * 3 + 2]);
    fan.triangle(1, 1, 2);
    fan.triangle(3, 3, 3);
    screen_chain chain(*on.context, *on.queue, fan, width, height, 2);
    for (const raster_path path : all_paths)
        REQUIRE(differences(chain.draw_all(path), chain.draw({}, path)) == 0);
}

TEST_CASE("Random interpenetrating triangles give the reference's ids and depths in every tier") {
    CAROUSEL_NEEDS_DEVICE();
    require_reference(random_triangles(1, 300, 40000, false));
    require_reference(random_triangles(2, 900, 900, false));
}

TEST_CASE("Triangles that extend far outside the picture give the reference's picture") {
    CAROUSEL_NEEDS_DEVICE();
    std::mt19937 random(77);
    triangle_set set;
    for (u32 i = 0; i < 60; ++i) {
        u32 v[3];
        for (u32& x : v) {
            const i32 reach = (body::guard_pixels - 200) * 256;  // not so far that they would be clipped
            x = set.vertex(random_in(random, -reach, reach), random_in(random, -reach, reach),
                           0.2F + static_cast<f32>(i) * 0.01F);
        }
        set.triangle(v[0], v[1], v[2]);
        set.triangle(v[0], v[2], v[1]);
    }
    require_reference(set);
}

TEST_CASE("Slivers and triangles without area give the reference's picture") {
    CAROUSEL_NEEDS_DEVICE();
    require_reference(random_triangles(3, 500, 40000, true));
}

TEST_CASE("All rotations of a triangle's corners cover the same pixels, all reflections none") {
    CAROUSEL_NEEDS_DEVICE();
    std::mt19937 random(5);
    for (u32 round = 0; round < 12; ++round) {
        triangle_set set;
        for (u32 k = 0; k < 3; ++k)
            set.vertex(random_in(random, 0, 96 * 256), random_in(random, 0, 80 * 256));
        for (const auto& order :
             {std::array{0U, 1U, 2U}, {1U, 2U, 0U}, {2U, 0U, 1U}, {0U, 2U, 1U}, {2U, 1U, 0U}, {1U, 0U, 2U}})
            set.triangle(order[0], order[1], order[2]);
        // depth is constant: equal pixels, equal pictures
        screen_chain chain(*on.context, *on.queue, set, width, height, 3);
        const bool first_is_front = differences(chain.draw({0}), chain.draw({})) != 0;
        const u32 front = first_is_front ? 0 : 3, back = first_is_front ? 3 : 0;
        for (u32 k = 1; k < 3; ++k) REQUIRE(differences(chain.draw({front}), chain.draw({front + k})) == 0);
        for (u32 k = 0; k < 3; ++k) REQUIRE(differences(chain.draw({back + k}), chain.draw({})) == 0);
    }
}

TEST_CASE("A shift by whole pixels only shifts the picture") {
    CAROUSEL_NEEDS_DEVICE();
    triangle_set set = random_triangles(8, 250, 4000, false);
    triangle_set moved = set;
    const u32 dx = 13, dy = 9;
    for (triangle_set::vertex_spec& v : moved.vertices)
        v.x += static_cast<i32>(dx) * 256, v.y += static_cast<i32>(dy) * 256;
    screen_chain a(*on.context, *on.queue, set, width, height, 2),
        b(*on.context, *on.queue, moved, width, height, 2);
    const std::vector<u32> p = a.draw_all(), q = b.draw_all(), pe = a.draw({}), qe = b.draw({});
    u64 seen = 0;
    for (u32 y = 0; y + dy < height; ++y) {
        for (u32 x = 0; x + dx < width; ++x) {
            const u64 i = y * width + x, j = (y + dy) * width + x + dx;
            const bool hit = p[i] != pe[i];
            REQUIRE(hit == (q[j] != qe[j]));
            if (hit) REQUIRE(p[i] == q[j]);
            seen += hit;
        }
    }
    REQUIRE(seen > 500);
}

TEST_CASE("At equal depth the lowest id wins, in any order of submission") {
    CAROUSEL_NEEDS_DEVICE();
    triangle_set set;
    for (u32 i = 0; i < 40; ++i) {
        const u32 a = set.vertex(-2000, -2000, 0.25F), b = set.vertex(-2000, 60000, 0.25F),
                  c = set.vertex(60000, -2000, 0.25F);
        set.triangle(a, b, c);
    }
    screen_chain chain(*on.context, *on.queue, set, width, height, 2);
    for (const raster_path path : all_paths) {
        const std::vector<u32> lowest = chain.draw({7, 30, 12, 39, 8}, path);
        REQUIRE(differences(lowest, chain.draw({7}, path)) == 0);
        REQUIRE(differences(lowest, chain.draw({39, 8, 12, 7, 30}, path)) == 0);
    }
}

TEST_CASE("Reversed submission gives the same picture") {
    CAROUSEL_NEEDS_DEVICE();
    const triangle_set set = random_triangles(21, 800, 6000, false);
    std::vector<u32> order(set.count());
    for (u32 i = 0; i < order.size(); ++i) order[i] = i;
    screen_chain chain(*on.context, *on.queue, set, width, height, 2);
    const std::vector<u32> forward = chain.draw(order);
    std::reverse(order.begin(), order.end());
    REQUIRE(differences(chain.draw(order), forward) == 0);
}

TEST_CASE("Garbage in ring memory yields some picture and no fault") {
    CAROUSEL_NEEDS_DEVICE();
    std::mt19937 random(4);
    triangle_set set = random_triangles(4, 400, 4000, false);
    screen_chain chain(*on.context, *on.queue, set, width, height, 0);
    const std::vector<u32> before = chain.draw_all();
    std::vector<u32> list(set.count());
    for (u32& id : list) id = static_cast<u32>((random() & 1U) ? random() : random() % set.count());
    for (u32 round = 0; round < 4; ++round) {
        triangle_counters counters{};
        counters.small = round == 0 ? ~0U : static_cast<u32>(random()),
        counters.large = round == 1 ? ~0U : static_cast<u32>(random() % 900);
        (*chain).set_triangles(list, counters);
        instance_record garbage;
        for (f32& x : garbage.clip) x = body::float_of(static_cast<u32>(random()));
        for (f32& x : garbage.model) x = body::float_of(static_cast<u32>(random()));
        (*chain).set_instances({garbage});
        for (const raster_path path : all_paths) (*chain).fragment(path);
        REQUIRE((*chain).picture().size() == u64{width} * height);
    }
    (*chain).set_instances({triangle_set::identity()});
    REQUIRE(differences(chain.draw_all(), before) == 0);  // and no leftovers remain
}
