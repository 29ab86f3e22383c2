#pragma once
// The chains that several tests of the stages run.

#include <memory>
#include <string>

#include <carousel/testing.hpp>
#include "ledger/ledger.hpp"
#include "stages/fragment/fragment.hpp"
#include "stages/fused/fused.hpp"
#include "stages/geometry/geometry.hpp"
#include "stages/vertex/vertex.hpp"

namespace carousel::test {

/// geometry, vertex, fragment; the picture is the output of "fragment".
inline std::unique_ptr<testing::chain> render_chain(const testing::chain_options& options,
                                                    const std::string& geometry_settings) {
    auto c = std::make_unique<testing::chain>(options);
    c->add("geometry", std::make_unique<stages::geometry>(), geometry_settings);
    c->add("vertex", std::make_unique<stages::vertex>(), "{}", {"geometry"});
    c->add("fragment", std::make_unique<stages::fragment>(), "{}", {"vertex"});
    c->prepare();
    return c;
}

/// One frame of that scene.
inline void run_scene(testing::chain& c, u64 frame_number, const kernels::scene_state& scene) {
    c.run(frame_number, stages::scene_parameters{scene});
}

/// Hash of one frame's picture.
inline u64 picture_hash(testing::chain& c, u64 frame_number, const std::string& stage = "fragment") {
    c.run(frame_number);
    return telemetry::hash_bytes(c.read_bytes(stage));
}

}  // namespace carousel::test
