#include <algorithm>
#include <cmath>

#include "stages/display/png.hpp"
#include "stages/geometry/obj.hpp"
#include "stages/settings.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::stages;
using test::contains;

namespace {

const std::string square = "v 0 0 0\nv 2 0 0\nv 2 2 0\nv 0 2 0\n";

/// The sentence with which an OBJ text is refused, or "accepted".
std::string refusal(const std::string& text) {
    scratch_folder folder;
    try {
        (void)load_obj(folder.write("m.obj", text));
    } catch (const settings_error& e) {
        CHECK(e.key() == "mesh");
        CHECK(std::string(e.what()).find('\n') == std::string::npos);
        return e.what();
    }
    return "accepted";
}

mesh_data load(const std::string& text) {
    scratch_folder folder;
    return load_obj(folder.write("m.obj", text));
}

f64 length(const f32 (&v)[3]) { return std::sqrt(f64{v[0]} * v[0] + f64{v[1]} * v[1] + f64{v[2]} * v[2]); }

}  // namespace

TEST_CASE("polygons become triangles that share their corners, with computed normals, inside the unit sphere") {
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
    // Two triangles share the edge on the x axis: one in the plane z = 0 (area 1/2), one three times as large in the plane y = 0.
    const auto mesh = load("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 3\nf 1 2 3\nf 1 4 2\n");
    REQUIRE(mesh.vertices.size() == 4);
    CHECK(mesh.vertices[0].normal[1] == test::near(3 / std::sqrt(10.0)));
    CHECK(mesh.vertices[0].normal[2] == test::near(1 / std::sqrt(10.0)));
    CHECK(mesh.vertices[2].normal[2] == test::near(1.0));
}

TEST_CASE("normals of the file are kept at unit length, texture coordinates turned to rows from the top") {
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

TEST_CASE("indices from the end, comments, CRLF and points behind their faces are understood") {
    CHECK(load(square + "f -4 -3 -2 -1\n").indices.size() == 6);
    CHECK(load("# a comment\r\nf 1 2 3 # another\r\nv 0 0 0\r\nv 1 0 0\r\nv 0 1 0\r\n").indices.size() == 3);
    CHECK(load("v 0 0 0\nv +1.5e0 0 0\nv 0 1 0 1.0\no name\ns off\nf 1 2 3\n").indices.size() == 3);
}

TEST_CASE("files that are none are refused by name") {
    CHECK_THROWS_WITH(load_obj("/absent/bunny.obj"), contains("/absent/bunny.obj") && contains("No such file"));
    CHECK_THROWS_WITH(load_obj("/tmp"), contains("not a file"));
    CHECK_THAT(refusal(""), contains("m.obj") && contains("empty"));
    CHECK_THAT(refusal("hello, world\n"), contains("no faces") && contains("OBJ"));
    CHECK_THAT(refusal(std::string("\0\1\2\377\n\0", 6)), contains("a byte 0: this is no text"));
    CHECK_THAT(refusal(square), contains("no faces (4 points in 4 lines)"));
}

TEST_CASE("a malformed line is refused by its number") {
    CHECK_THAT(refusal("v 0 0 0\nv 1 abc 0\nv 0 1 0\nf 1 2 3\n"), contains("m.obj:2: \"abc\" is not a number"));
    CHECK_THAT(refusal("v 0 0 0\nv 1 0\nv 0 1 0\nf 1 2 3\n"), contains("m.obj:2: a point needs three coordinates"));
    CHECK_THAT(refusal(square + "f 1 2\n"), contains("m.obj:5: a face needs at least three corners and has 2"));
    CHECK_THAT(refusal(square + "f 1 2 x\n"), contains("m.obj:5: \"x\" is not a corner"));
    CHECK_THAT(refusal(square + "f 1 2 3/x\n"), contains("m.obj:5: \"3/x\" is not a corner"));
    CHECK_THAT(refusal("v 1e99 0 0\n" + square + "f 1 2 3\n"), contains("m.obj:1: \"1e99\""));
}

TEST_CASE("numbers that are not finite are refused by their line") {
    CHECK_THAT(refusal("v 0 0 0\nv nan 0 0\nv 0 1 0\nf 1 2 3\n"), contains("m.obj:2: \"nan\" is not a finite number"));
    CHECK_THAT(refusal("v 0 0 0\nv 1 0 0\nv 0 -inf 0\nf 1 2 3\n"), contains("m.obj:3: \"-inf\" is not a finite number"));
    CHECK_THAT(refusal(square + "vn 0 nan 1\nf 1 2 3\n"), contains("m.obj:5"));
    CHECK_THAT(refusal(square + "vt inf 0\nf 1 2 3\n"), contains("m.obj:5"));
}

TEST_CASE("indices beyond what the file defines are refused by their line") {
    CHECK_THAT(refusal(square + "f 1 2 3\nf 1 2 5\n"), contains("m.obj:6: a face names number 5 of the points, but the file has 4"));
    CHECK_THAT(refusal(square + "f 0 1 2\n"), contains("m.obj:5") && contains("count from 1"));
    CHECK_THAT(refusal(square + "f -5 1 2\n"), contains("m.obj:5") && contains("4 are defined so far"));
    CHECK_THAT(refusal(square + "f 1/1 2/1 3/1\n"), contains("number 1 of the texture coordinates, but the file has 0"));
    CHECK_THAT(refusal(square + "f 1//7 2//7 3//7\n"), contains("number 7 of the normals"));
    CHECK_THAT(refusal(square + "f 99999999999999999999 1 2\n"), contains("m.obj:5"));
}

TEST_CASE("a mesh without extent is refused") {
    CHECK_THAT(refusal("v 1 1 1\nv 1 1 1\nv 1 1 1\nf 1 2 3\n"), contains("one point"));
}

TEST_CASE("the texture of the first material that names one is found beside the file") {
    scratch_folder folder;
    folder.write("m.mtl", "newmtl plain\nKd 1 0 0\nnewmtl painted\nmap_Kd maps\\wood.png\n");
    const auto mesh = load_obj(folder.write("m.obj", "mtllib m.mtl\n" + square + "usemtl plain\nf 1 2 3\n"));
    REQUIRE(mesh.surfaces.size() == 1);
    CHECK(mesh.surfaces[0].image.file == folder.path / "maps/wood.png");
    CHECK(load(square + "f 1 2 3\n").surfaces.empty());
    CHECK(load("mtllib absent.mtl\n" + square + "f 1 2 3\n").indices.size() == 3);
}
