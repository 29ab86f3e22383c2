// Materials of OBJ files, and PLY files.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "stages/assets/scene_files.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using namespace carousel::stages;
using test::contains;

namespace {

scene_asset read_text_ply(const std::string& text) {
    scratch_folder folder;
    return read_ply(folder.write("m.ply", text));
}

template <typename T>
void put(std::string& to, T value, bool big) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    if (big) std::reverse(std::begin(bytes), std::end(bytes));
    to.append(bytes, sizeof bytes);
}

const std::string corners =
    "ply\nformat ascii 1.0\ncomment made by hand\nelement vertex 4\nproperty float x\nproperty float "
    "y\nproperty "
    "float z\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n1 1 0\n0 1 "
    "0\n";

}  // namespace

TEST_CASE("a material of an OBJ file is a metallic-roughness material") {
    scratch_folder folder;
    folder.write(
        "m.mtl",
        "newmtl paint\nKd 0.5 0 0\nKs 0.5 0.25 0\nNs 30\nKe 1 0 0\nd 0.5\nmap_d holes.png\nmap_Bump "
        "bumps.png\nnewmtl metal\nPr 0.3\nPm 1\nmap_Pr rough.png\nnorm normals.png\nmap_Kd -clamp on -s 2 4 "
        "1 -o 0.5 0.25 0 wood.png\n");
    const scene_asset asset = read_obj(folder.write(
        "m.obj",
        "mtllib m.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl paint\nf 1 2 3\nusemtl metal\nf 3 2 1\nusemtl "
        "paint\nf 1 2 3\n"));
    REQUIRE(asset.materials.size() == 2);
    const asset_material& paint = asset.materials[0];
    CHECK(std::abs(paint.base_color[0] - 0.2140411F) < 1e-6F);
    CHECK((paint.base_color[3] == 0.5F && paint.alpha == alpha_mode::blend));
    CHECK((paint.emissive[0] == 1 && paint.metallic == 0 && paint.specular[1] == 0.25F));
    CHECK(std::abs(paint.roughness - 0.5F) < 1e-6F);  // (2 / 32) ^ (1 / 4)
    CHECK((paint.opacity_texture.present() && paint.height_texture.present() &&
           !paint.normal_texture.present()));
    const asset_material& metal = asset.materials[1];
    CHECK((metal.metallic == 1 && metal.roughness == 0.3F && metal.normal_texture.present()));
    CHECK(metal.roughness_texture.present());
    CHECK(asset.textures[metal.base_color_texture.texture].wrap_u == texture_wrap::clamp);
    f32 uv[2] = {0.25F, 1.0F - 0.5F};  // v points down
    metal.base_color_texture.transform.apply(uv);
    CHECK(uv[0] == 2 * 0.25F + 0.5F);
    CHECK(uv[1] == 1 - (4 * 0.5F + 0.25F));
    const auto& primitives = asset.meshes[0].primitives;
    REQUIRE(primitives.size() == 2);
    CHECK(primitives[0].triangle_numbers == std::vector<u32>{0, 2});
    CHECK(primitives[1].triangle_numbers == std::vector<u32>{1});
}

TEST_CASE("an ascii PLY file has computed normals if it has none, and polygons become triangles") {
    const scene_asset asset = read_text_ply(corners + "4 0 1 2 3\n");
    const asset_primitive& p = asset.meshes[0].primitives[0];
    CHECK(p.vertex_count() == 4);
    CHECK(p.triangle_count() == 2);
    CHECK(p.normals[2] == 1);
    CHECK(p.unit_normals);
    CHECK(p.colors.empty());
}

TEST_CASE("binary PLY files of both byte orders have colours, normals and coordinates") {
    for (const bool big : {false, true}) {
        std::string file =
            std::string("ply\nformat binary_") + (big ? "big" : "little") +
            "_endian 1.0\nelement vertex 3\nproperty double x\nproperty float y\nproperty short z\n"
            "property float nx\nproperty float ny\nproperty float nz\nproperty uchar red\nproperty "
            "uchar green\nproperty uchar blue\nproperty uchar alpha\nproperty float s\nproperty float "
            "t\nproperty float confidence\nelement edge 1\nproperty int a\nelement face 1\nproperty "
            "uchar flags\nproperty list ushort uint vertex_index\nend_header\n";
        for (const int k : {0, 1, 2}) {
            put<f64>(file, k == 1 ? 300.5 : 0, big);
            put<f32>(file, k == 2 ? 7 : 0, big);
            put<i16>(file, static_cast<i16>(-300), big);
            for (const f32 n : {0.0F, 0.0F, 2.0F}) put<f32>(file, n, big);
            for (const u8 c : {255, 0, 188, 51}) put<u8>(file, c, big);
            for (const f32 x : {0.25F, 0.25F, 9.0F}) put<f32>(file, x, big);
        }
        put<i32>(file, 5, big);
        put<u8>(file, 1, big);
        put<u16>(file, 3, big);
        for (const u32 i : {0, 1, 2}) put<u32>(file, i, big);
        CAPTURE(big);
        const scene_asset asset = read_text_ply(file);
        const asset_primitive& p = asset.meshes[0].primitives[0];
        CHECK(p.positions == std::vector<f32>{0, 0, -300, 300.5F, 0, -300, 0, 7, -300});
        CHECK(p.normals[8] == 1);
        CHECK((p.colors[0] == 1 && std::abs(p.colors[2] - 0.5029F) < 1e-3F && p.colors[3] == 0.2F));
        CHECK(p.coordinates[0][1] == 0.75F);
        CHECK(p.indices == std::vector<u32>{0, 1, 2});
        CHECK_THROWS_WITH(read_text_ply(file.substr(0, file.size() - 2)), contains("it ends early"));
    }
}

TEST_CASE("invalid PLY files are refused with the reason") {
    CHECK_THROWS_WITH(read_text_ply("solid"), contains("no end_header"));
    CHECK_THROWS_WITH(read_text_ply("plyx\nend_header\n"), contains("does not begin with the line \"ply\""));
    CHECK_THROWS_WITH(read_text_ply("ply\nformat binary 1.0\nend_header\n"),
                      contains("\"binary\" is not a format"));
    CHECK_THROWS_WITH(read_text_ply("ply\nelement vertex 1\nend_header\n"), contains("names no format"));
    CHECK_THROWS_WITH(read_text_ply("ply\nformat ascii 1.0\nelement vertex 4000000000\nend_header\n"),
                      contains("not a number of elements"));
    CHECK_THROWS_WITH(
        read_text_ply("ply\nformat ascii 1.0\nelement vertex 2000000000\nproperty float x\nend_header\n0\n"),
        contains("it ends early"));
    CHECK_THROWS_WITH(read_text_ply(corners + "3 0 1 4\n"), contains("names vertex 4, but the file has 4"));
    CHECK_THROWS_WITH(read_text_ply(corners + "3 0 1 -1\n"), contains("face 0 names vertex -1"));
    CHECK_THROWS_WITH(read_text_ply(corners + "3 0 1 x\n"), contains("\"x\" is not a number"));
    CHECK_THROWS_WITH(read_text_ply(corners + "2 0 1\n"),
                      contains("no \"face\" with 3 or more corners") && contains("vertex, face; export"));
    const std::string strips =
        "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float "
        "z\nelement tristrips 1\nproperty list int int vertex_indices\nend_header\n0 0 0\n3 0 0 0\n";
    CHECK_THROWS_WITH(read_text_ply(strips), contains("vertex, tristrips; export"));
    CHECK_THROWS_WITH(read_ply("/absent/m.ply"), contains("/absent/m.ply"));
}

TEST_CASE("a second element vertex or face of a PLY file is refused by line") {
    std::string file = corners + "3 0 1 2\n";
    const auto end = file.find("element face");
    file.insert(end, "element vertex 4\nproperty float x\nproperty float y\nproperty float z\n");
    CHECK_THROWS_WITH(read_text_ply(file), contains("line 8: a second element vertex"));
    file = corners + "3 0 1 2\n";
    file.insert(file.find("end_header"), "element face 1\nproperty list uchar int vertex_indices\n");
    CHECK_THROWS_WITH(read_text_ply(file), contains("line 10: a second element face"));
}

TEST_CASE("numbers of a PLY file may have a plus sign, and too small ones are 0") {
    std::string file = corners + "3 0 1 2\n";
    file.replace(file.find("1 1 0"), 5, "+1.5 1 -1e-400");
    const asset_primitive p = read_text_ply(file).meshes[0].primitives[0];
    CHECK(p.positions[6] == 1.5F);
    CHECK(p.positions[8] == 0);
    file.replace(file.find("-1e-400"), 7, "-1e+400");
    CHECK_THROWS_WITH(read_text_ply(file), contains("\"-1e+400\" is out of the range of a float"));
    file.replace(file.find("-1e+400"), 7, "+-1");
    CHECK_THROWS_WITH(read_text_ply(file), contains("\"+-1\" is not a number"));
}
