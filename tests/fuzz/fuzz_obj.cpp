// A mesh file from anywhere: a mesh that can be drawn, or one error message. Input: the OBJ file, 0xFF, its
// material library "m.mtl".
#include <cmath>

#include "core/errors.hpp"
#include "stages/geometry/moving_mesh.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace carousel;
    static const test::scratch files;
    test::bytes in(data, size);
    const std::string mesh = files.write("mesh.obj", in.part());
    files.write("m.mtl", in.part());
    try {
        const stages::mesh_data m = stages::load_mesh(mesh);
        test::require(!m.indices.empty() && m.indices.size() % 3 == 0, "whole triangles");
        for (const u32 i : m.indices) test::require(i < m.vertices.size(), "an index is in range");
        for (const stages::mesh_vertex& v : m.vertices) {
            const f64 p = std::hypot(v.position[0], v.position[1], v.position[2]),
                      n = std::hypot(v.normal[0], v.normal[1], v.normal[2]);
            test::require(p <= 1.001, "a point is in the unit sphere");
            test::require(std::abs(n - 1) < 1e-3, "a normal has length 1");
        }
    } catch (const config_error& e) {
        test::require(std::string(e.what()).size() > 10, "a refusal says something");
    }
    return 0;
}
