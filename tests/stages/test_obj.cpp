#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include <fmt/format.h>

#include "picture/png.hpp"
#include "stages/assets/obj_parts.hpp"
#include "stages/assets/scene_files.hpp"
#include "stages/geometry/mesh_data.hpp"
#include "stages/geometry/mesh_source.hpp"
#include "stages/scene/scene_parameters.hpp"
#include "stages/sdk/configuration.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exception_text.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using namespace carousel::stages;
using test::contains;

namespace {

const std::string square = "v 0 0 0\nv 2 0 0\nv 2 2 0\nv 0 2 0\n";

/// The message with which an OBJ text is refused, or "accepted".
std::string refusal(const std::string& text) {
    scratch_folder folder;
    try {
        (void)load_mesh(folder.write("m.obj", text));
    } catch (const settings_error& e) {
        CHECK(e.key() == "mesh");
        CHECK(std::string(e.what()).find('\n') == std::string::npos);
        return e.what();
    }
    return "accepted";
}

mesh_data load(const std::string& text) {
    scratch_folder folder;
    return load_mesh(folder.write("m.obj", text));
}

f64 length(const f32 (&v)[3]) { return std::sqrt(f64{v[0]} * v[0] + f64{v[1]} * v[1] + f64{v[2]} * v[2]); }

}  // namespace

TEST_CASE("polygons become triangles with shared corners and computed normals in the unit sphere") {
    const auto mesh = load(square + "f 1 2 3 4\n");
    CHECK(mesh.vertices.size() == 4);
    REQUIRE(mesh.indices.size() == 6);
    f64 farthest = 0;
    for (const auto& v : mesh.vertices) {
        CHECK(v.normal[2] == 1.0F);
        CHECK(std::abs(v.position[0]) == test::near(std::sqrt(0.5)));
        farthest = std::max(farthest, length(v.position));
    }
    CHECK(farthest == test::near(1.0));
}

TEST_CASE("computed normals weigh the triangles around a point by their area") {
    // Two triangles share the edge on the x axis: one in the plane z = 0 (area 1/2), one three times as large
    // in the plane y = 0.
    const auto mesh = load("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 3\ns 1\nf 1 2 3\nf 1 4 2\n");
    REQUIRE(mesh.vertices.size() == 4);
    CHECK(mesh.vertices[0].normal[1] == test::near(3 / std::sqrt(10.0)));
    CHECK(mesh.vertices[0].normal[2] == test::near(1 / std::sqrt(10.0)));
    CHECK(mesh.vertices[2].normal[2] == test::near(1.0));
}

TEST_CASE("a file's normals are normalised, and texture rows count from the top") {
    const auto mesh = load(square + "vt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\nvn 0 0 -5\nf 1/1/1 2/2/1 3/3/1 4/4/1\n");
    REQUIRE(mesh.vertices.size() == 4);
    for (const auto& v : mesh.vertices) {
        CHECK(v.normal[2] == -1.0F);
        CHECK(v.texture[0] == (v.position[0] < 0 ? 0.0F : 1.0F));
        CHECK(v.texture[1] == (v.position[1] < 0 ? 1.0F : 0.0F));
    }
}

TEST_CASE("a corner with another normal or texture coordinate is another vertex") {
    CHECK(load(square + "vt 0 0\nvt 1 1\nf 1/1 2/1 3/1\nf 1/2 3/1 4/1\n").vertices.size() == 5);
}

TEST_CASE("negative indices, comments, CRLF and points after their faces are understood") {
    CHECK(load(square + "f -4 -3 -2 -1\n").indices.size() == 6);
    CHECK(load("# a comment\r\nf 1 2 3 # another\r\nv 0 0 0\r\nv 1 0 0\r\nv 0 1 0\r\n").indices.size() == 3);
    CHECK(load("v 0 0 0\nv +1.5e0 0 0\nv 0 1 0 1.0\no name\ns off\nf 1 2 3\n").indices.size() == 3);
}

TEST_CASE("invalid files are refused by name") {
    CHECK_THROWS_WITH(load_mesh("/absent/bunny.obj"),
                      contains("/absent/bunny.obj") && contains("No such file"));
    CHECK_THROWS_WITH(read_obj("/tmp"), contains("not a file"));
    CHECK_THAT(refusal(""), contains("m.obj") && contains("empty"));
    CHECK_THAT(refusal("hello, world\n"), contains("no faces") && contains("OBJ"));
    CHECK_THAT(refusal(std::string("\0\1\2\377\n\0", 6)), contains("a zero byte: this is not a text file"));
    CHECK_THAT(refusal(square), contains("no faces (4 points in 4 lines)"));
}

TEST_CASE("a malformed line is refused by its number") {
    CHECK_THAT(refusal("v 0 0 0\nv 1 abc 0\nv 0 1 0\nf 1 2 3\n"),
               contains("m.obj:2: \"abc\" is not a number"));
    CHECK_THAT(refusal("v 0 0 0\nv 1 0\nv 0 1 0\nf 1 2 3\n"),
               contains("m.obj:2: a point needs three coordinates"));
    CHECK_THAT(refusal(square + "f 1 2\n"),
               contains("m.obj:5: a face needs at least three corners and has 2"));
    CHECK_THAT(refusal(square + "f 1 2 x\n"), contains("m.obj:5: \"x\" is not a corner"));
    CHECK_THAT(refusal(square + "f 1 2 3/x\n"), contains("m.obj:5: \"3/x\" is not a corner"));
    CHECK_THAT(refusal("v 1e99 0 0\n" + square + "f 1 2 3\n"), contains("m.obj:1: \"1e99\""));
    CHECK_THAT(refusal("v 0 0e9999 0\n" + square + "f 1 2 3\n"),
               contains("m.obj:1: the exponent of \"0e9999\" does not fit a float"));
    CHECK_THAT(refusal(square + "vn 0 0E+400 1\nf 1 2 3\n"), contains("m.obj:5: the exponent of \"0E+400\""));
    CHECK(load("v 0.0e+000 0e-3 0E5\n" + square + "f 1 2 3\n").indices.size() == 3);
}

TEST_CASE("numbers that are not finite are refused by their line") {
    CHECK_THAT(refusal("v 0 0 0\nv nan 0 0\nv 0 1 0\nf 1 2 3\n"),
               contains("m.obj:2: \"nan\" is not a finite number"));
    CHECK_THAT(refusal("v 0 0 0\nv 1 0 0\nv 0 -inf 0\nf 1 2 3\n"),
               contains("m.obj:3: \"-inf\" is not a finite number"));
    CHECK_THAT(refusal(square + "vn 0 nan 1\nf 1 2 3\n"), contains("m.obj:5"));
    CHECK_THAT(refusal(square + "vt inf 0\nf 1 2 3\n"), contains("m.obj:5"));
}

TEST_CASE("a skin weight whose joint exceeds an int is refused by its line, others are ignored") {
    CHECK_THAT(refusal(square + "vw 0 9999999999 0.5\nf 1 2 3\n"),
               contains("m.obj:5: \"9999999999\" is not a joint or weight of a skin"));
    CHECK_THAT(refusal(square + "vw 0 nan 0.5\nf 1 2 3\n"), contains("m.obj:5"));
    CHECK(load(square + "vw 0 1 0.25 2 0.75\nf 1 2 3\n").indices.size() == 3);
}

TEST_CASE("indices beyond the definitions of the file are refused by their line") {
    CHECK_THAT(refusal(square + "f 1 2 3\nf 1 2 5\n"),
               contains("m.obj:6: a face names number 5 of the points, but the file has 4"));
    CHECK_THAT(refusal(square + "f 0 1 2\n"), contains("m.obj:5") && contains("count from 1"));
    CHECK_THAT(refusal(square + "f -5 1 2\n"), contains("m.obj:5") && contains("4 are defined so far"));
    CHECK_THAT(refusal(square + "f 1/1 2/1 3/1\n"),
               contains("number 1 of the texture coordinates, but the file has 0"));
    CHECK_THAT(refusal(square + "f 1//7 2//7 3//7\n"), contains("number 7 of the normals"));
    CHECK_THAT(refusal(square + "f 99999999999999999999 1 2\n"), contains("m.obj:5"));
}

TEST_CASE("a mesh without extent is refused") {
    CHECK_THAT(refusal("v 1 1 1\nv 1 1 1\nv 1 1 1\nf 1 2 3\n"), contains("points are equal"));
}

TEST_CASE("each material that a face uses is a surface, with its own picture and colour") {
    scratch_folder folder;
    folder.write(
        "m.mtl",
        "newmtl red\nKd 1 0 0\nmap_Bump bumps.png\nnewmtl unused\nKd 0 1 0\nnewmtl wood\nmap_Kd "
        "maps\\wood.png\nnewmtl grey\nKd 0.5 0.5 0.5\nmap_Kd stone.png\nnewmtl black\nKd 0 0 0\nmap_Kd "
        "coal.png\n");
    const auto path =
        folder.write("m.obj", "mtllib m.mtl\n" + square +
                                  "f 1 2 3\nusemtl red\nf 1 2 3\nusemtl wood\nf 1 2 3\nusemtl "
                                  "grey\nf 1 2 3\nusemtl black\nf 1 2 3\nusemtl red\nf 3 4 1\n");
    mesh_data mesh;
    const std::string log = test::exception_text([&] { mesh = load_mesh(path); });
    CHECK_THAT(log, contains("1 material has a bump map, which is not shown"));
    REQUIRE(mesh.surfaces.size() == 5);
    CHECK(mesh.surfaces[0].image.none());
    CHECK(mesh.surfaces[0].factor[1] == 1.0F);
    CHECK(mesh.surfaces[1].factor[0] == 1.0F);
    CHECK(mesh.surfaces[1].factor[1] == 0.0F);
    CHECK(mesh.surfaces[2].image.file == folder.path / "maps/wood.png");
    CHECK(mesh.surfaces[2].factor[0] == 1.0F);
    CHECK(mesh.surfaces[3].factor[0] == test::near(0.2140411));  // sRGB 0.5 as linear light
    CHECK(mesh.surfaces[4].factor[0] == 1.0F);
    const auto surface_of_triangle = [&](std::size_t t) {
        return mesh.vertices[mesh.indices[3 * t]].surface;
    };
    CHECK(surface_of_triangle(0) == 0);
    CHECK(surface_of_triangle(1) == 1);
    CHECK(surface_of_triangle(4) == 4);
    CHECK(surface_of_triangle(5) == 1);
    CHECK(load(square + "f 1 2 3\n").surfaces.empty());
    CHECK(load("mtllib absent.mtl\n" + square + "f 1 2 3\n").indices.size() == 3);
}

TEST_CASE("without normals a box keeps its edges and a flat angle is smooth, unless set otherwise") {
    const std::string cube = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 1\nv 1 0 1\nv 1 1 1\nv 0 1 1\n",
                      faces = "f 4 3 2 1\nf 5 6 7 8\nf 1 2 6 5\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8\n";
    const mesh_data box = load(cube + faces);
    CHECK(box.vertices.size() == 24);
    for (const mesh_vertex& v : box.vertices)
        CHECK(std::abs(v.normal[0]) + std::abs(v.normal[1]) + std::abs(v.normal[2]) == 1.0F);
    CHECK(load(cube + "s 3\n" + faces).vertices.size() == 8);
    const std::string roof = "v 0 0 0\nv 2 0 0\nv 0 2 0\nv 2 2 0\nv 0 -2 -1\nv 2 -2 -1\n",
                      sides = "f 1 2 4 3\nf 5 6 2 1\n";  // 27 degrees between the two
    CHECK(load(roof + sides).vertices.size() == 6);
    CHECK(load(roof + "s off\n" + sides).vertices.size() == 8);
}

TEST_CASE("vertex colours of an OBJ file are reported by one warning") {
    const auto log = [&](const std::string& text) { return test::exception_text([&] { (void)load(text); }); };
    CHECK_THAT(log("v 0 0 0 1 0 0\nv 1 0 0 0 1 0\nv 0 1 0 0 0 1\nf 1 2 3\n"),
               contains("m.obj: 1 primitive has vertex colours, which are not shown"));
    CHECK(log("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n").empty());
}

namespace {

struct flat_polygon {
    std::vector<point3> corners;
    /// Twice the area by the shoelace formula, x and y.
    [[nodiscard]] f64 area() const {
        f64 sum = 0;
        for (std::size_t k = 0; k < corners.size(); ++k) {
            const point3 &a = corners[k], &b = corners[(k + 1) % corners.size()];
            sum += a[0] * b[1] - b[0] * a[1];
        }
        return sum;
    }
};

/// Twice the area of each triangle, seen from +z; negative for one that is turned over.
std::vector<f64> areas_of(const std::vector<point3>& p, const std::vector<u32>& cut) {
    std::vector<f64> out;
    for (std::size_t t = 0; t + 2 < cut.size(); t += 3) {
        const point3 &a = p[cut[t]], &b = p[cut[t + 1]], &c = p[cut[t + 2]];
        out.push_back((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]));
    }
    return out;
}

/// Cut into corners - 2 triangles, none turned over, whose areas add up: then nothing is covered twice and
/// nothing is left out.
void check_exactly_covered(const flat_polygon& p) {
    std::vector<u32> cut;
    u64 budget = polygon_budget;
    REQUIRE(triangulate(p.corners, budget, cut));
    REQUIRE(cut.size() == 3 * (p.corners.size() - 2));
    f64 sum = 0;
    for (const f64 area : areas_of(p.corners, cut)) {
        CHECK(area >= -1e-9);
        sum += area;
    }
    CHECK(sum == test::near(p.area()));
}

/// A C of two arcs, open to the right.
flat_polygon letter_c(u32 steps) {
    flat_polygon c;
    const auto arc = [&](f64 radius, bool back) {
        for (u32 k = 0; k <= steps; ++k) {
            const f64 at = (0.15 + 0.7 * (back ? steps - k : k) / steps) * 2 * std::numbers::pi;
            c.corners.push_back({radius * std::cos(at), radius * std::sin(at), 0});
        }
    };
    arc(1, false);
    arc(0.6, true);
    return c;
}

std::string as_obj(const flat_polygon& p, bool reversed = false) {
    std::string text, face = "f";
    for (const point3& q : p.corners) text += fmt::format("v {} {} {}\n", q[0], q[1], q[2]);
    for (std::size_t k = 0; k < p.corners.size(); ++k)
        face += fmt::format(" {}", reversed ? p.corners.size() - k : k + 1);
    return text + face + "\n";
}

f64 area_of(const mesh_data& m) {
    f64 sum = 0;
    for (std::size_t t = 0; t + 2 < m.indices.size(); t += 3) {
        const auto &a = m.vertices[m.indices[t]].position, &b = m.vertices[m.indices[t + 1]].position,
                   &c = m.vertices[m.indices[t + 2]].position;
        sum += f64{b[0] - a[0]} * (c[1] - a[1]) - f64{b[1] - a[1]} * (c[0] - a[0]);
    }
    return sum;
}

}  // namespace

TEST_CASE("a concave polygon keeps its opening: a C is not a disc") {
    for (const u32 steps : {2U, 9U, 200U}) check_exactly_covered(letter_c(steps));
    const flat_polygon c = letter_c(200);
    const f64 radius_squared = 1 / area_of(load(as_obj(c))) * c.area();  // fitted into the unit sphere
    CHECK(radius_squared > 0.5);
    // clockwise stays clockwise
    CHECK(area_of(load(as_obj(c, true))) == test::near(-area_of(load(as_obj(c)))));
    CHECK(load(as_obj(c)).indices.size() == 3 * (c.corners.size() - 2));  // more corners than a byte can
                                                                          // count
}

TEST_CASE("stars, combs and polygons with a hole along a seam are covered once") {
    std::mt19937_64 random(11);
    std::uniform_real_distribution<f64> radius(0.1, 1);
    for (int times = 0; times < 200; ++times) {
        flat_polygon star;
        const u32 n = 4 + static_cast<u32>(random() % 60);
        for (u32 k = 0; k < n; ++k) {
            const f64 at = 2 * std::numbers::pi * k / n, r = radius(random);
            star.corners.push_back({r * std::cos(at), r * std::sin(at), 0});
        }
        CAPTURE(times, n);
        check_exactly_covered(star);
    }
    flat_polygon comb;
    for (int k = 0; k < 20; ++k) comb.corners.push_back({f64(k), k % 2 == 0 ? 0.0 : 5.0, 0});
    comb.corners.push_back({19, 6, 0});
    comb.corners.push_back({0, 6, 0});
    check_exactly_covered(comb);
    check_exactly_covered({{{0, 0, 0},
                            {4, 0, 0},
                            {4, 4, 0},
                            {0, 4, 0},
                            {0, 0, 0},
                            {1, 1, 0},
                            {1, 3, 0},
                            {3, 3, 0},
                            {3, 1, 0},
                            {1, 1, 0}}});
    check_exactly_covered(
        {{{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {2, 2, 0}, {1, 2, 0}, {1, 1, 0}, {0.5, 0.5, 0}}});
    // four corners, one of them inwards
    check_exactly_covered({{{0, 0, 0}, {3, 0, 0}, {1, 1, 0}, {0, 3, 0}}});
}

TEST_CASE("a concave polygon may be in any plane") {
    for (const point3 up : {point3{1, 0, 0}, point3{0, 1, 0}, point3{0, 0, -1}, point3{0.6, 0, 0.8}}) {
        const point3 side = {up[1] - up[2], up[2] - up[0], up[0] - up[1]};
        const point3 other = {up[1] * side[2] - up[2] * side[1], up[2] * side[0] - up[0] * side[2],
                              up[0] * side[1] - up[1] * side[0]};
        flat_polygon turned, flat = letter_c(7);
        for (const point3& p : flat.corners) {
            turned.corners.push_back({p[0] * side[0] + p[1] * other[0], p[0] * side[1] + p[1] * other[1],
                                      p[0] * side[2] + p[1] * other[2]});
        }
        std::vector<u32> cut;
        u64 budget = polygon_budget;
        REQUIRE(triangulate(turned.corners, budget, cut));
        f64 sum = 0;
        for (const f64 area : areas_of(flat.corners, cut)) {
            CHECK(area >= -1e-9);
            sum += area;
        }
        CHECK(sum == test::near(flat.area()));
    }
}

TEST_CASE("polygons that fold or have no area end, too, and one made to take hours is refused") {
    std::vector<u32> cut;
    u64 budget = polygon_budget;
    REQUIRE(
        triangulate(std::vector<point3>{{0, 0, 0}, {1, 1, 0}, {1, 0, 0}, {0, 1, 0}, {2, 2, 2}}, budget, cut));
    CHECK(cut.size() == 9);
    cut.clear();
    REQUIRE(triangulate(std::vector<point3>(6, point3{1, 1, 1}), budget, cut));
    CHECK(cut.size() == 12);
    budget = 10;
    CHECK_FALSE(triangulate(letter_c(20).corners, budget, cut));
}

TEST_CASE("a mesh that would be invisible reports the reason") {
    const auto facing_away = [](const mesh_data& m) { return stages::facing_away(m, three_quarter_eye); };
    const std::string cube = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 1\nv 1 0 1\nv 1 1 1\nv 0 1 1\n";
    CHECK(facing_away(load(cube + "f 4 3 2 1\nf 5 6 7 8\nf 1 2 6 5\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8\n"))
              .empty());
    CHECK_THAT(facing_away(load(cube + "f 1 2 3 4\nf 8 7 6 5\nf 5 6 2 1\nf 6 7 3 2\nf 7 8 4 3\nf 8 5 1 4\n")),
               contains("inside out"));
    CHECK(facing_away(load(square + "f 1 2 3 4\n")).empty());
    CHECK_THAT(facing_away(load(square + "f 4 3 2 1\n")), contains("only backs and edges"));
    // Edge-on for a camera in its plane.
    CHECK_THAT(stages::facing_away(load(square + "f 1 2 3 4\n"), {2.6F, 0, 0}),
               contains("only backs and edges"));
    CHECK_THAT(facing_away(load(square + "vn 0 0 -1\nf 1//1 2//1 3//1 4//1\n")),
               contains("against its normals"));
    CHECK(facing_away(load(square + "v 1 1 1\nf 4 3 2 1\nf 1 2 5\n")).empty());
}
