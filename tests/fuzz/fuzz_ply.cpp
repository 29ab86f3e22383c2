// A PLY file from anywhere: a scene whose arrays fit one another, or one error message. Input: the file.
#include "core/errors.hpp"
#include "stages/assets/scene_files.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace carousel;
    static const test::scratch files;
    const std::string path = files.write("mesh.ply", {reinterpret_cast<const char*>(data), size});
    try {
        const stages::scene_asset asset = stages::read_ply(path);
        const stages::asset_primitive& p = asset.meshes.at(0).primitives.at(0);
        test::require(!p.indices.empty() && p.indices.size() % 3 == 0, "whole triangles");
        for (const u32 i : p.indices) test::require(i < p.vertex_count(), "an index is in range");
        test::require(p.normals.size() == p.positions.size(), "each vertex has a normal");
        test::require(p.colors.empty() || p.colors.size() == 4 * p.vertex_count(),
                      "each vertex has a colour");
        for (const auto& set : p.coordinates)
            test::require(set.empty() || set.size() == 2 * p.vertex_count(), "each vertex has coordinates");
    } catch (const config_error& e) {
        const std::string message = e.what();
        test::require(message.size() > 10 && message.find('\n') == std::string::npos,
                      "a refusal is one sentence");
    }
    return 0;
}
