// Meshes that meshopt and Draco have compressed: read if the programs have the library, refused by name if
// not.
#include <cstring>

#include "stages/assets/gltf_document.hpp"
#include "stages/assets/scene_files.hpp"
#include "tests/stages/gltf_builder.hpp"
#include "tests/support/catch.hpp"

#if TEST_MESHOPT
#include <meshoptimizer.h>
#endif
#if TEST_DRACO
#include <draco/compression/encode.h>
#include <draco/mesh/triangle_soup_mesh_builder.h>
#endif

using namespace carousel;
using namespace carousel::stages;
using test::contains;
using test::gltf_builder;

namespace {

scene_asset read(const gltf_builder& b) {
    scratch_folder folder;
    return read_gltf(b.write(folder));
}

}  // namespace

TEST_CASE("a file that requires a compression without its library is refused by name") {
    for (const char* name : {"EXT_meshopt_compression", "KHR_draco_mesh_compression"}) {
        gltf_builder b;
        b.square();
        b.root["extensionsRequired"] = {name};
        if (gltf_document::is_supported(name))
            CHECK_NOTHROW(read(b));
        else
            CHECK_THROWS_WITH(read(b), contains(name) && contains("built without lib"));
    }
}

#if TEST_MESHOPT
TEST_CASE("a buffer view that meshopt has compressed is read, and a damaged one is refused") {
    gltf_builder b;
    b.square();
    const std::vector<f32> corners = {-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0};
    std::string packed(meshopt_encodeVertexBufferBound(4, 12), '\0');
    packed.resize(meshopt_encodeVertexBuffer(reinterpret_cast<unsigned char*>(packed.data()), packed.size(),
                                             corners.data(), 4, 12));
    const auto view = b.view(packed);
    nlohmann::json& compressed = b.root["bufferViews"][view];
    nlohmann::json extension = compressed;
    extension.update({{"byteStride", 12}, {"count", 4}, {"mode", "ATTRIBUTES"}});
    const auto positions = b.primitive()["attributes"]["POSITION"].get<std::size_t>();
    const auto at = b.root["accessors"][positions]["bufferView"].get<std::size_t>();
    b.root["bufferViews"][at] = {
        {"buffer", 1}, {"byteLength", 48}, {"extensions", {{"EXT_meshopt_compression", extension}}}};
    CHECK(read(b).meshes[0].primitives[0].positions == corners);
    auto& part = b.root["bufferViews"][at]["extensions"]["EXT_meshopt_compression"];
    part["byteLength"] = packed.size() - 8;
    CHECK_THROWS_WITH(read(b), contains("compressed bytes are damaged"));
    part["count"] = 2'000'000'000;
    CHECK_THROWS_WITH(read(b), contains("exceed"));
    part["mode"] = "OTHER";
    part["count"] = 4;
    CHECK_THROWS_WITH(read(b), contains("\"mode\" = \"OTHER\""));
}
#endif

#if TEST_DRACO
TEST_CASE("a primitive that Draco has compressed is read, and a damaged one is refused") {
    draco::TriangleSoupMeshBuilder builder;
    builder.Start(2);
    const int attribute = builder.AddAttribute(draco::GeometryAttribute::POSITION, 3, draco::DT_FLOAT32);
    const f32 corners[4][3] = {{-1, -1, 0}, {1, -1, 0}, {1, 1, 0}, {-1, 1, 0}};
    builder.SetAttributeValuesForFace(attribute, draco::FaceIndex(0), corners[0], corners[1], corners[2]);
    builder.SetAttributeValuesForFace(attribute, draco::FaceIndex(1), corners[0], corners[2], corners[3]);
    const auto mesh = builder.Finalize();
    draco::EncoderBuffer buffer;
    REQUIRE(draco::Encoder().EncodeMeshToBuffer(*mesh, &buffer).ok());
    gltf_builder b;
    b.square();
    const auto view = b.view(std::string(buffer.data(), buffer.size()));
    for (auto& accessor : b.root["accessors"]) accessor.erase("bufferView");
    b.primitive()["attributes"].erase("NORMAL");
    b.primitive()["attributes"].erase("TEXCOORD_0");
    b.primitive()["extensions"]["KHR_draco_mesh_compression"] = {
        {"bufferView", view}, {"attributes", {{"POSITION", mesh->attribute(attribute)->unique_id()}}}};
    b.root["extensionsRequired"] = {"KHR_draco_mesh_compression"};
    const scene_asset asset = read(b);
    const asset_primitive& p = asset.meshes[0].primitives[0];
    CHECK(p.vertex_count() == 4);
    CHECK(p.triangle_count() == 2);
    f32 area = 0;
    for (std::size_t t = 0; t < p.indices.size(); t += 3) {
        const f32 *const u = &p.positions[3 * p.indices[t]], *const v = &p.positions[3 * p.indices[t + 1]],
                         *const w = &p.positions[3 * p.indices[t + 2]];
        area += ((v[0] - u[0]) * (w[1] - u[1]) - (v[1] - u[1]) * (w[0] - u[0])) / 2;
    }
    CHECK(area == 4);
    b.root["bufferViews"][view]["byteLength"] = buffer.size() / 2;
    CHECK_THROWS_WITH(read(b), contains("compressed bytes are damaged"));
}

TEST_CASE("accessors define the integers of a Draco mesh, and joints have two groups") {
    draco::TriangleSoupMeshBuilder builder;
    builder.Start(1);
    const draco::FaceIndex face(0);
    const f32 corners[3][3] = {{-1, -1, 0}, {1, -1, 0}, {1, 1, 0}};
    const u8 red[4] = {255, 0, 51, 255}, first[4] = {0, 1, 2, 3}, second[4] = {4, 5, 6, 7};
    const f32 eighth[4] = {0.125F, 0.125F, 0.125F, 0.125F};
    gltf_builder b;
    b.square();
    b.primitive()["attributes"] = nlohmann::json::object();
    b.root["accessors"] = nlohmann::json::array();
    std::vector<std::pair<const char*, int>> added;
    const auto add = [&](const char* name, draco::GeometryAttribute::Type kind, int components, bool is_byte,
                         const void* a, const void* c, const void* d, bool normalized) {
        const auto type = is_byte ? draco::DT_UINT8 : draco::DT_FLOAT32;
        const int number = builder.AddAttribute(kind, static_cast<i8>(components), type);
        builder.SetAttributeValuesForFace(number, face, a, c, d);
        added.emplace_back(name, number);
        b.primitive()["attributes"][name] = b.root["accessors"].size();
        b.root["accessors"].push_back({{"componentType", is_byte ? 5121 : 5126},
                                       {"normalized", normalized},
                                       {"count", 3},
                                       {"type", components == 3 ? "VEC3" : "VEC4"}});
    };
    using attribute = draco::GeometryAttribute;
    add("POSITION", attribute::POSITION, 3, false, corners[0], corners[1], corners[2], false);
    add("COLOR_0", attribute::COLOR, 4, true, red, red, red, true);
    add("JOINTS_0", attribute::GENERIC, 4, true, first, first, first, false);
    add("JOINTS_1", attribute::GENERIC, 4, true, second, second, second, false);
    add("WEIGHTS_0", attribute::GENERIC, 4, false, eighth, eighth, eighth, false);
    add("WEIGHTS_1", attribute::GENERIC, 4, false, eighth, eighth, eighth, false);
    const auto mesh = builder.Finalize();
    draco::EncoderBuffer buffer;
    REQUIRE(draco::Encoder().EncodeMeshToBuffer(*mesh, &buffer).ok());
    nlohmann::json numbers;
    for (const auto& [name, number] : added) numbers[name] = mesh->attribute(number)->unique_id();
    b.primitive()["extensions"]["KHR_draco_mesh_compression"] = {
        {"bufferView", b.view(std::string(buffer.data(), buffer.size()))}, {"attributes", numbers}};
    b.primitive().erase("indices");
    const asset_primitive p = read(b).meshes[0].primitives[0];
    REQUIRE(p.colors.size() == 12);
    CHECK((p.colors[0] == 1 && p.colors[1] == 0 && p.colors[2] == 0.2F));
    REQUIRE(p.influences == 8);
    CHECK(std::vector<u16>(p.joints.begin(), p.joints.begin() + 8) ==
          std::vector<u16>{0, 1, 2, 3, 4, 5, 6, 7});
    CHECK(p.weights[7] == 0.125F);
}
#endif
