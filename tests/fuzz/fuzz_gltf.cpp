// A glTF file from anywhere, with its buffers inside: a mesh that can be drawn, or one error message. Input:
// the file, .gltf or .glb.
#include <algorithm>
#include <cmath>

#include "core/errors.hpp"
#include "stages/geometry/moving_mesh.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace carousel;
    static const test::scratch files;
    const std::string path = files.write("mesh.gltf", {reinterpret_cast<const char*>(data), size});
    try {
        const stages::moving_mesh moving = stages::load_moving_mesh(path, "");
        const stages::mesh_data& m = moving.mesh;
        const kernels::motion_counts counts = moving.motion.counts();
        for (const kernels::influence& i : moving.motion.influences)
            test::require(i.matrix < counts.matrices, "a matrix is in range");
        for (const kernels::moving_vertex& v : moving.motion.vertices) {
            test::require(v.first_influence + v.influence_count <= counts.influences,
                          "influences are in range");
            test::require(v.first_delta + v.delta_count <= counts.deltas, "deltas are in range");
        }
        test::require(!m.indices.empty() && m.indices.size() % 3 == 0, "whole triangles");
        for (const u32 i : m.indices) test::require(i < m.vertices.size(), "an index is in range");
        const std::size_t surfaces = std::max<std::size_t>(1, m.surfaces.size());
        for (const stages::mesh_vertex& v : m.vertices) {
            const f64 p = std::hypot(v.position[0], v.position[1], v.position[2]),
                      n = std::hypot(v.normal[0], v.normal[1], v.normal[2]);
            test::require(p <= 1.001, "a point is in the unit sphere");
            test::require(std::abs(n - 1) < 1e-3, "a normal has length 1");
            test::require(v.surface < surfaces, "a surface is in range");
        }
        for (const stages::surface& s : m.surfaces) {
            if (!s.image.none()) (void)stages::size_of_texture(s.image, "mesh");
        }
    } catch (const config_error& e) {
        const std::string message = e.what();
        test::require(message.size() > 10 && message.find('\n') == std::string::npos,
                      "a refusal is one sentence");
    }
    return 0;
}
