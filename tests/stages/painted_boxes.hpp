#pragma once
// A glTF scene with everything that affects a picture: a mesh shown by several nodes (one of them mirrored,
// one stretched), two materials with textures of odd sizes, PNG and bytes inside the file, and one material
// that has a factor only.

#include "picture/png.hpp"
#include "tests/stages/gltf_builder.hpp"

namespace carousel::test {

/// Stripes of two colours, as the bytes of a PNG.
inline std::string striped_png(u32 width, u32 height, u32 one, u32 other) {
    std::vector<std::byte> rgba;
    for (u32 y = 0; y < height; ++y) {
        for (u32 x = 0; x < width; ++x) {
            const u32 c = (x + y) / 3 % 2 == 0 ? one : other;
            for (const u32 shift : {16U, 8U, 0U}) rgba.push_back(static_cast<std::byte>(c >> shift));
            rgba.push_back(std::byte{255});
        }
    }
    const auto png = encode_png(rgba, width, height);
    return {reinterpret_cast<const char*>(png.data()), png.size()};
}

/// Writes the scene into the folder and returns its path.
inline std::string painted_boxes(const scratch_folder& folder) {
    gltf_builder b;
    std::vector<f32> positions, coordinates;
    std::vector<u16> indices;
    for (u32 face = 0; face < 6; ++face) {  // counter-clockwise seen from outside
        const u32 axis = face / 2, u = (axis + 1) % 3, v = (axis + 2) % 3;
        const f32 side = face % 2 == 0 ? 1.0F : -1.0F;
        for (u32 corner = 0; corner < 4; ++corner) {
            f32 p[3];
            p[axis] = side;
            p[u] = (corner & 1U) ? side : -side;
            p[v] = (corner & 2U) ? 1.0F : -1.0F;
            positions.insert(positions.end(), p, p + 3);
            coordinates.push_back((corner & 1U) ? 2.0F : 0.0F);
            coordinates.push_back((corner & 2U) ? 0.0F : 2.0F);
        }
        const auto first = static_cast<u16>(4 * face);
        for (const u16 k : {0, 1, 3, 0, 3, 2}) indices.push_back(static_cast<u16>(first + k));
    }
    b.positions(positions);
    b.coordinates(coordinates);
    b.indices(indices);
    folder.write("stripes.png", striped_png(37, 21, 0xE0A030, 0x204080));
    b.root["images"] = {
        {{"uri", "stripes.png"}},
        {{"bufferView", b.view(striped_png(64, 64, 0x30A060, 0xF0F0E0))}, {"mimeType", "image/png"}}};
    b.root["textures"] = {{{"source", 0}}, {{"source", 1}}};
    b.root["materials"] = {
        {{"pbrMetallicRoughness", {{"baseColorTexture", {{"index", 0}}}}}},
        {{"pbrMetallicRoughness",
          {{"baseColorTexture", {{"index", 1}}}, {"baseColorFactor", {1.0, 0.6, 0.6, 1.0}}}}},
        {{"pbrMetallicRoughness", {{"baseColorFactor", {0.8, 0.1, 0.05, 1.0}}}}}};
    const auto box = b.primitive();
    b.root["meshes"] = nlohmann::json::array();
    for (int material = 0; material < 3; ++material) {
        auto painted = box;
        painted["material"] = material;
        b.root["meshes"].push_back({{"primitives", {painted}}});
    }
    b.root["scenes"] = {{{"nodes", {0, 1, 2, 3}}}};
    b.root["nodes"] = {{{"mesh", 0}, {"rotation", {0.27, 0, 0, 0.96}}},
                       {{"mesh", 1}, {"translation", {2.6, 0.3, 0}}, {"scale", {-0.8, 0.8, 0.8}}},
                       {{"mesh", 2}, {"translation", {-2.4, 0, 0.5}}, {"scale", {0.5, 1.2, 0.5}}},
                       {{"mesh", 0}, {"translation", {0, 2.2, -1}}, {"scale", {0.6, 0.6, 0.6}}}};
    return b.write(folder, "boxes.gltf");
}

}  // namespace carousel::test
