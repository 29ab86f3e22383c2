#pragma once
// The chains that several tests of the stages run.

#include <memory>
#include <string>

#include "stages/fragment/fragment.hpp"
#include "stages/fused/fused.hpp"
#include "stages/geometry/geometry.hpp"
#include "stages/vertex/vertex.hpp"
#include "telemetry/ledger.hpp"
#include "tests/stages/harness.hpp"

namespace carousel::test {

/// geometry, vertex, fragment; the picture is what "fragment" wrote.
inline std::unique_ptr<chain> render_chain(const chain_options& options, const std::string& geometry_settings) {
    auto c = std::make_unique<chain>(options);
    c->add("geometry", std::make_unique<stages::geometry>(), geometry_settings);
    c->add("vertex", std::make_unique<stages::vertex>(), "{}", {"geometry"});
    c->add("fragment", std::make_unique<stages::fragment>(), "{}", {"vertex"});
    c->prepare();
    return c;
}

/// Hash of one frame's picture.
inline u64 picture_hash(chain& c, u64 sequence, const std::string& stage = "fragment") {
    c.run(sequence);
    return telemetry::hash_bytes(c.read(stage));
}

}  // namespace carousel::test
