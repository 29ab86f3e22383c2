// glTF files: how they are converted, and which are refused with which message.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stages/geometry/moving_mesh.hpp"
#include "stages/sdk/configuration.hpp"
#include "tests/stages/gltf_builder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exception_text.hpp"

using namespace carousel;
using namespace carousel::stages;
using nlohmann::json;
using test::contains;
using test::gltf_builder;

namespace {

mesh_data load(const gltf_builder& b) {
    scratch_folder folder;
    return load_mesh(b.write(folder));
}

/// The message with which a file is refused, or "accepted".
std::string refusal_of(const std::string& path) {
    try {
        (void)load_mesh(path);
    } catch (const settings_error& e) {
        CHECK(e.key() == "mesh");
        CHECK(std::string(e.what()).find('\n') == std::string::npos);
        return e.what();
    }
    return "accepted";
}
std::string refusal(const gltf_builder& b) {
    scratch_folder folder;
    return refusal_of(b.write(folder));
}
template <typename Spoil>
std::string refusal_with(const Spoil& spoil) {
    gltf_builder b;
    b.square();
    spoil(b);
    return refusal(b);
}

/// The z of the triangles' planes' normals: > 0 where a triangle is counter-clockwise seen from +z.
f64 facing(const mesh_data& m, std::size_t triangle = 0) {
    const auto* const i = &m.indices[3 * triangle];
    const auto& a = m.vertices[i[0]].position;
    const auto& b = m.vertices[i[1]].position;
    const auto& c = m.vertices[i[2]].position;
    return f64{b[0] - a[0]} * (c[1] - a[1]) - f64{b[1] - a[1]} * (c[0] - a[0]);
}

}  // namespace

TEST_CASE("a square with normals and texture coordinates loads equally from .gltf and .glb") {
    gltf_builder b;
    b.square();
    const mesh_data m = load(b);
    REQUIRE(m.vertices.size() == 4);
    CHECK(m.indices == std::vector<u32>{0, 1, 2, 0, 2, 3});
    CHECK(m.vertices[2].position[0] == test::near(std::sqrt(0.5)));
    CHECK(m.vertices[2].normal[2] == 1.0F);
    CHECK(m.vertices[0].texture[1] == 1.0F);
    CHECK(facing(m) > 0);
    scratch_folder folder;
    const mesh_data other = load_mesh(folder.write("m.glb", b.binary()));
    CHECK(other.indices == m.indices);
    CHECK(other.vertices[3].position[1] == m.vertices[3].position[1]);
    folder.write("square.bin", b.bytes);
    b.root["buffers"] = {{{"byteLength", b.bytes.size()}, {"uri", "sub/%2e./square.bin"}}};
    std::filesystem::create_directory(folder.path / "sub");
    CHECK(load_mesh(b.write(folder)).indices == m.indices);
}

TEST_CASE("indices of 8, 16 and 32 bits, none, strips and fans give the same triangles") {
    const std::vector<f32> corners = {-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0};
    const auto triangles = [&](const auto& fill) {
        gltf_builder b;
        b.positions(corners);
        b.normals({0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1});
        fill(b);
        const mesh_data m = load(b);
        CHECK(facing(m, 0) > 0);
        CHECK(facing(m, 1) > 0);
        return m.indices;
    };
    const std::vector<u32> expected = {0, 1, 2, 0, 2, 3};
    CHECK(triangles([](auto& b) { b.template indices<u8>({0, 1, 2, 0, 2, 3}); }) == expected);
    CHECK(triangles([](auto& b) { b.template indices<u16>({0, 1, 2, 0, 2, 3}); }) == expected);
    CHECK(triangles([](auto& b) { b.template indices<u32>({0, 1, 2, 0, 2, 3}); }) == expected);
    CHECK(triangles([](auto& b) {
              b.template indices<u8>({0, 1, 3, 2});
              b.primitive()["mode"] = 5;
          }) == std::vector<u32>{0, 1, 3, 1, 2, 3});
    CHECK(triangles([](auto& b) { b.primitive()["mode"] = 6; }) == std::vector<u32>{1, 2, 0, 2, 3, 0});
    gltf_builder unindexed;
    unindexed.positions({0, 0, 0, 1, 0, 0, 0, 1, 0});
    CHECK(load(unindexed).indices == std::vector<u32>{0, 1, 2});
}

TEST_CASE("without normals every triangle is flat and has vertices of its own") {
    gltf_builder b;
    b.positions({0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1});
    b.indices<u8>({0, 1, 2, 0, 2, 3});
    const mesh_data m = load(b);
    REQUIRE(m.vertices.size() == 6);
    CHECK(m.vertices[0].normal[2] == 1.0F);
    CHECK(m.vertices[3].normal[0] == 1.0F);
}

TEST_CASE("nodes place their meshes: parents first, repeated meshes, quaternions and matrices") {
    gltf_builder b;
    b.square();
    const f64 half = std::sqrt(0.5);
    b.root["nodes"] = {{{"translation", {10, 0, 0}}, {"children", {1, 2}}},
                       {{"mesh", 0}, {"scale", {2, 2, 2}}},
                       {{"mesh", 0}, {"rotation", {0, half, 0, half}}, {"translation", {0, 0, 5}}}};
    const mesh_data m = load(b);
    REQUIRE(m.vertices.size() == 8);
    REQUIRE(m.indices.size() == 12);
    // In the file's units: node 1 spans x 8..12, y -2..2; node 2 is rotated by a quarter turn about y: x =
    // 10, z 4..6.
    const f64 unit = (f64{m.vertices[1].position[0]} - m.vertices[0].position[0]) / 4;
    CHECK((f64{m.vertices[2].position[1]} - m.vertices[1].position[1]) / unit == test::near(4.0));
    CHECK((f64{m.vertices[4].position[2]} - m.vertices[5].position[2]) / unit == test::near(2.0));
    CHECK(m.vertices[4].position[0] == test::near(f64{m.vertices[5].position[0]}));
    CHECK(m.vertices[4].normal[0] == test::near(1.0));
    b.root["nodes"] = {{{"mesh", 0}, {"matrix", {2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 7, 8, 9, 1}}}};
    const mesh_data wide = load(b);
    CHECK(wide.vertices[1].position[0] / wide.vertices[2].position[1] == test::near(2.0));
}

TEST_CASE("a mirrored node keeps its front in front, and normals follow a scale that differs by axis") {
    gltf_builder b;
    b.square();
    b.root["nodes"][0]["scale"] = {-3, 1, 1};
    const mesh_data m = load(b);
    CHECK(facing(m, 0) > 0);
    CHECK(facing(m, 1) > 0);
    CHECK(m.vertices[0].normal[2] == 1.0F);
    gltf_builder slope;
    slope.positions({0, 0, 0, 1, -1, 0, 0, 0, 1});
    slope.normals({1, 1, 0, 1, 1, 0, 1, 1, 0});
    slope.root["nodes"][0]["scale"] = {2, 1, 1};
    const mesh_data stretched = load(slope);
    const auto& n = stretched.vertices[0].normal;
    CHECK(f64{n[1]} / n[0] == test::near(2.0));  // the plane x/2 + y = 0
}

TEST_CASE("flat, huge and doubled triangles are a mesh all the same") {
    gltf_builder flat;
    flat.square();
    flat.root["nodes"][0]["scale"] = {1, 1, 0};
    CHECK(load(flat).indices.size() == 6);
    gltf_builder huge;
    huge.positions({0, 0, 0, 1e30F, 0, 0, 0, 1e30F, 0});
    CHECK(load(huge).vertices[0].normal[2] == 1.0F);
    gltf_builder doubled;
    doubled.square();
    doubled.indices<u8>({0, 1, 2, 0, 1, 2, 2, 1, 0, 1, 1, 1});
    CHECK(load(doubled).indices.size() == 12);
}

TEST_CASE("materials: factors, textures, one surface per used one, and white without any") {
    gltf_builder b;
    b.square();
    b.root["images"] = {{{"uri", "wood.jpg"}}};
    b.root["textures"] = {{{"source", 0}}};
    b.root["materials"] = {{{"name", "unused"}},
                           {{"pbrMetallicRoughness", {{"baseColorFactor", {1, 0.5, 0.25, 1}}}}},
                           {{"pbrMetallicRoughness", {{"baseColorTexture", {{"index", 0}}}}}}};
    auto plain = b.primitive();
    auto painted = plain;
    painted["material"] = 1;
    auto wooden = plain;
    wooden["material"] = 2;
    b.root["meshes"][0]["primitives"] = {painted, wooden, painted, plain};
    scratch_folder folder;
    const mesh_data m = load_mesh(b.write(folder));
    REQUIRE(m.surfaces.size() == 3);
    CHECK(m.surfaces[0].factor[2] == 0.25F);
    CHECK(m.surfaces[0].image.none());
    CHECK(m.surfaces[1].image.file == std::filesystem::weakly_canonical(folder.path) / "wood.jpg");
    CHECK(m.surfaces[2].factor[0] == 1.0F);
    CHECK(m.vertices[0].surface == 0);
    CHECK(m.vertices[4].surface == 1);
    CHECK(m.vertices[8].surface == 0);
    CHECK(m.vertices[12].surface == 2);
    b.root["images"] = {{{"bufferView", b.view("\x89PNG...")}, {"mimeType", "image/png"}}};
    const mesh_data inside = load(b);
    CHECK(inside.surfaces[1].image.bytes.size() == 7);
    CHECK_THAT(inside.surfaces[1].image.name, contains("images[0]"));
}

TEST_CASE("KHR_texture_transform moves, turns and scales texture coordinates and selects a set") {
    const auto coordinates = [](const nlohmann::json& transform) {
        gltf_builder b;
        b.square();
        b.root["images"] = {{{"uri", "wood.jpg"}}};
        b.root["textures"] = {{{"source", 0}}};
        b.root["extensionsRequired"] = {"KHR_texture_transform"};
        b.root["materials"] = {
            {{"pbrMetallicRoughness",
              {{"baseColorTexture",
                {{"index", 0}, {"extensions", {{"KHR_texture_transform", transform}}}}}}}}};
        b.primitive()["material"] = 0;
        const mesh_data m = load(b);
        std::vector<f32> out;
        for (const auto& v : m.vertices) out.insert(out.end(), {v.texture[0], v.texture[1]});
        return out;
    };
    const std::vector<f32> plain = coordinates(nlohmann::json::object());
    REQUIRE(plain.size() == 8);
    const auto moved = coordinates({{"offset", {0.5, -0.25}}, {"scale", {2, 3}}});
    const auto turned = coordinates({{"rotation", 1.5707963267948966}, {"offset", {0, 1}}});
    for (std::size_t k = 0; k < plain.size(); k += 2) {
        CHECK(moved[k] == 2 * plain[k] + 0.5F);
        CHECK(moved[k + 1] == 3 * plain[k + 1] - 0.25F);
        // a quarter turn, counter-clockwise with v pointing down:
        CHECK(std::abs(turned[k] - plain[k + 1]) < 1e-6F);
        CHECK(std::abs(turned[k + 1] - (1 - plain[k])) < 1e-6F);  // (1, 0) goes to (0, -1)
    }
    const auto other_set = coordinates({{"texCoord", 1}});  // the square has no second set: all are 0
    CHECK(std::all_of(other_set.begin(), other_set.end(), [](f32 v) { return v == 0; }));
}

TEST_CASE("an invalid KHR_texture_transform is refused with its place") {
    const auto with = [](const nlohmann::json& transform) {
        return refusal_with([&](auto& b) {
            b.root["images"] = {{{"uri", "wood.jpg"}}};
            b.root["textures"] = {{{"source", 0}}};
            b.root["materials"] = {
                {{"pbrMetallicRoughness",
                  {{"baseColorTexture",
                    {{"index", 0}, {"extensions", {{"KHR_texture_transform", transform}}}}}}}}};
            b.primitive()["material"] = 0;
        });
    };
    CHECK_THAT(with({{"rotation", "left"}}),
               contains("KHR_texture_transform") && contains("\"rotation\" = \"left\""));
    CHECK_THAT(with({{"offset", {1}}}), contains("\"offset\": expected 2 finite numbers"));
    CHECK_THAT(with({{"scale", {1e300, 1}}}),
               contains("KHR_texture_transform") && contains("out of the range of a float"));
    CHECK(with({{"rotation", 1}}) == "accepted");
}

TEST_CASE("a double-sided material has the backs of its triangles, with the opposite normals") {
    gltf_builder b;
    b.square();
    CHECK(load(b).indices.size() == 6);
    b.root["materials"] = {{{"doubleSided", true}}};
    b.primitive()["material"] = 0;
    const mesh_data m = load(b);
    REQUIRE(m.indices.size() == 12);
    REQUIRE(m.vertices.size() == 8);
    CHECK(facing(m, 0) > 0);
    CHECK(facing(m, 2) < 0);
    CHECK(m.vertices[m.indices[0]].normal[2] == 1.0F);
    CHECK(m.vertices[m.indices[6]].normal[2] == -1.0F);
    CHECK(facing_away(m, {0.3F, 0.2F, 2.6F})
              .empty());  // fronts and backs enclose nothing, which does not count as inside out
}

TEST_CASE("each kind of property that a picture does not show has one warning") {
    gltf_builder b;
    b.square();
    const json map = {{"index", 0}};
    const json material = {{"normalTexture", map},
                           {"occlusionTexture", map},
                           {"emissiveTexture", map},
                           {"pbrMetallicRoughness", {{"metallicRoughnessTexture", map}}}};
    b.root["materials"] = {material, material};
    b.root["animations"] = json::array({json::object()});
    b.root["cameras"] = json::array({json::object()});
    b.root["extensionsUsed"] = {"KHR_texture_transform", "KHR_materials_sheen"};
    b.root["images"] = {{{"uri", "map.png"}}};
    b.root["textures"] = {{{"source", 0}}};
    auto first = b.primitive();
    first["material"] = 0;
    first["targets"] = json::array({json::object()});
    auto second = first;
    second["material"] = 1;
    b.root["meshes"][0]["primitives"] = {first, second};
    const std::string log = test::exception_text([&] { (void)load(b); });
    for (const char* what :
         {"2 materials have normal maps, which are not shown", "2 materials have occlusion maps",
          "2 materials are metallic or glossy and are drawn matt", "1 camera of the file is not used",
          "these extensions are ignored: KHR_materials_sheen",
          "1 invalid part is left out, the first because of: "}) {
        CAPTURE(what);
        const std::size_t at = log.find(what);
        CHECK(at != std::string::npos);
        CHECK(log.find(what, at + 1) == std::string::npos);
    }
    CHECK(std::count(log.begin(), log.end(), '\n') == 6);
}

TEST_CASE("invalid glTF files are refused by name") {
    scratch_folder folder;
    CHECK_THAT(refusal_of("/absent/m.gltf"), contains("/absent/m.gltf") && contains("No such file"));
    CHECK_THAT(refusal_of(folder.write("a.gltf", "")), contains("not a readable glTF file"));
    CHECK_THAT(refusal_of(folder.write("a.gltf", "[1]")), contains("not an object"));
    CHECK_THAT(refusal_of(folder.write("a.gltf", "{\"asset\": {\"version\": \"1.0\"}}")),
               contains("glTF 1.0") && contains("convert it"));
    CHECK_THAT(refusal_of(folder.write("a.gltf", "{\"asset\": {}, \"meshes\": {}}")), contains("glTF 1.0"));
    for (const char* number : {"1", "1.0", "1.1"})
        CHECK_THAT(
            refusal_of(folder.write("a.gltf", fmt::format(R"({{"asset": {{"version": {}}}}})", number))),
            contains("glTF 1.0") && contains("convert it"));
    CHECK_THAT(refusal_of(folder.write("a.glb", std::string("glTF\1\0\0\0\24\0\0\0\0\0\0\0\0\0\0\0", 20))),
               contains("glTF 1.0") && contains("convert it"));
    CHECK_THAT(refusal_of(folder.write("a.gltf", "{\"asset\": {\"version\": \"3.0\"}}")),
               contains("asset.version = \"3.0\""));
    CHECK_THAT(refusal_of(folder.write("a.gltf", "{\"asset\": {\"version\": \"2.0\"}}")),
               contains("no node of its scene shows a mesh"));
    gltf_builder b;
    b.square();
    const std::string whole = b.binary();
    for (const std::size_t length : {std::size_t{4}, std::size_t{19}, std::size_t{200}, whole.size() - 40}) {
        CHECK_THAT(refusal_of(folder.write("a.glb", whole.substr(0, length))),
                   contains("a.glb: not a whole glTF 2.0 binary file"));
    }
    std::string liar = whole;
    const std::size_t chunk = whole.find("BIN") - 4;
    liar[chunk] = static_cast<char>(liar[chunk] + 8);  // eight bytes more than there are
    CHECK_THAT(refusal_of(folder.write("a.glb", liar)), contains("its binary chunk should have"));
}

TEST_CASE("indices and offsets outside the file are refused with their place") {
    using nlohmann::json;
    CHECK_THAT(refusal_with([](auto& b) { b.root["accessors"][0]["count"] = 5; }),
               contains("accessors[0]") && contains("buffer view of 48 bytes"));
    CHECK_THAT(refusal_with([](auto& b) { b.root["accessors"][0]["byteOffset"] = 4; }),
               contains("accessors[0]"));
    CHECK_THAT(refusal_with([](auto& b) { b.root["accessors"][0]["count"] = 4'000'000'000U; }),
               contains("\"count\" = 4000000000"));
    CHECK_THAT(refusal_with([](auto& b) { b.root["accessors"][0]["count"] = -1; }),
               contains("\"count\" = -1: expected a whole number"));
    CHECK_THAT(refusal_with([](auto& b) { b.root["bufferViews"][0]["byteLength"] = 100'000; }),
               contains("bufferViews[0]") && contains("lie outside its buffer"));
    CHECK_THAT(refusal_with([](auto& b) { b.root["bufferViews"][0]["byteStride"] = 4; }),
               contains("\"byteStride\" = 4"));
    CHECK_THAT(refusal_with([](auto& b) { b.root["bufferViews"][0]["buffer"] = 1; }),
               contains("number 1 of the buffers, but the file has 1"));
    CHECK_THAT(refusal_with([](auto& b) { b.primitive()["attributes"]["POSITION"] = 99; }),
               contains("number 99 of the accessors"));
    CHECK_THAT(refusal_with([](auto& b) { b.primitive()["attributes"].erase("POSITION"); }),
               contains("it has no \"POSITION\""));
    CHECK_THAT(refusal_with([](auto& b) {
                   b.template indices<u16>({0, 1, 4});
               }),
               contains("index 2 is 4, but there are 4 positions"));
    CHECK_THAT(refusal_with([](auto& b) {
                   b.template indices<u32>({0, 1, 0xFFFFFFFF});
               }),
               contains("index 2 is 4294967295"));
    CHECK_THAT(refusal_with([](auto& b) {
                   b.template indices<u8>({0, 1});
               }),
               contains("it has 2 corners; a list of triangles needs a multiple of 3"));
    CHECK_THAT(refusal_with([](auto& b) { b.root["accessors"][3]["componentType"] = 5126; }),
               contains("accessors[3]") || contains("not whole numbers"));
    CHECK_THAT(refusal_with([](auto& b) { b.root["scene"] = 7; }), contains("\"scene\" = 7"));
    CHECK_THAT(refusal_with([](auto& b) { b.root["nodes"][0]["mesh"] = 3; }),
               contains("number 3 of the meshes"));
    CHECK_THAT(refusal_with([](auto& b) { b.root["nodes"][0]["children"] = {5}; }),
               contains("nodes[0]: it names node 5 as a child, but the file has 1"));
    CHECK_THAT(refusal_with([](auto& b) { b.root["scenes"][0]["nodes"] = {7}; }),
               contains("scenes[0]: it names node 7, but the file has 1"));
    CHECK_THAT(refusal_with([](auto& b) { b.root["nodes"][0]["children"] = {0}; }),
               contains("nodes[0]") && contains("tree"));
    CHECK_THAT(refusal_with([](auto& b) { b.root["nodes"] = "none"; }),
               contains("\"nodes\" = \"none\": expected a list"));
    CHECK_THAT(refusal_with([](auto& b) {
                   b.root["nodes"][0]["rotation"] = {0, 0, 0, 0};
               }),
               contains("quaternion"));
    CHECK_THAT(refusal_with([](auto& b) {
                   b.root["nodes"][0]["scale"] = {1e300, 1e300, 1};
               }),
               contains("out of the range of a float"));
    CHECK_THAT(refusal_with([](auto& b) {
                   b.root["nodes"][0]["scale"] = {0, 0, 0};
               }),
               contains("points are equal"));
}

TEST_CASE("positions that are not finite are refused by number") {
    gltf_builder b;
    b.positions({0, 0, 0, 1, NAN, 0, 0, 1, 0});
    CHECK_THAT(refusal(b), contains("POSITION 1 is not finite"));
}

TEST_CASE("unsupported features are refused by name: broken sparse accessors, extensions, only points") {
    CHECK_THAT(refusal_with([](auto& b) {
                   b.root["accessors"][0]["sparse"] = {{"count", 1}};
               }),
               contains("accessors[0]: sparse"));
    CHECK_THAT(refusal_with([](auto& b) { b.root["extensionsRequired"] = {"KHR_texture_basisu"}; }),
               contains("KHR_texture_basisu") && contains("not supported"));
    CHECK(refusal_with([](auto& b) { b.root["extensionsRequired"] = {"KHR_mesh_quantization"}; }) ==
          "accepted");
    CHECK_THAT(refusal_with([](auto& b) { b.primitive()["mode"] = 1; }), contains("only points and lines"));
    CHECK_THAT(refusal_with([](auto& b) { b.primitive()["mode"] = 7; }), contains("\"mode\" = 7"));
    CHECK_THAT(refusal_with([](auto& b) { b.root["accessors"][0].erase("bufferView"); }),
               contains("it has no \"bufferView\""));
}

TEST_CASE("uris that leave the folder, name other machines or hold broken data are refused") {
    const auto with_uri = [](const std::string& uri) {
        return refusal_with([&](auto& b) {
            b.root["buffers"] = {{{"byteLength", b.bytes.size()}, {"uri", uri}}};
        });
    };
    CHECK_THAT(with_uri("../square.bin"), contains("\"../square.bin\" leads out of the folder"));
    CHECK_THAT(with_uri("%2e%2E/square.bin"), contains("leads out of the folder"));
    CHECK_THAT(with_uri("/etc/passwd"), contains("leads out of the folder"));
    CHECK_THAT(with_uri("https://example.org/a.bin"), contains("other locations are not read"));
    CHECK_THAT(with_uri("file:a.bin"), contains("other locations are not read"));
    CHECK_THAT(with_uri("a%00b"), contains("not the name of a file"));
    CHECK_THAT(with_uri("absent.bin"), contains("absent.bin") && contains("No such file"));
    CHECK_THAT(with_uri("data:application/octet-stream;base64,QUJD*"), contains("not valid base64"));
    CHECK_THAT(with_uri("data:text/plain,hello"), contains("not valid base64"));
    CHECK_THAT(with_uri("data:application/octet-stream;base64,QUJD"), contains("but there are 3"));
    scratch_folder folder;
    std::filesystem::create_directory(folder.path / "inner");
    std::filesystem::create_symlink("/etc/passwd", folder.path / "inner" / "link.bin");
    gltf_builder b;
    b.square();
    b.root["buffers"] = {{{"byteLength", 4}, {"uri", "link.bin"}}};
    CHECK_THAT(refusal_of(b.write(folder, "inner/m.gltf")), contains("leads out of the folder"));
}
