// Transforms of a scene's nodes, and totals.
#include "stages/assets/scene_asset.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::stages;

namespace {

asset_node at(f32 x, u32 parent, std::vector<u32> children) {
    asset_node node;
    node.translation[0] = x;
    node.parent = parent;
    node.children = std::move(children);
    return node;
}

}  // namespace

TEST_CASE("nodes of a scene are visited parents first, and a child's transform follows its parent's") {
    scene_asset asset;
    asset.nodes = {at(1, no_index, {2, 1}), at(10, 0, {}), at(100, 0, {3}), at(1000, 2, {}),
                   at(5, no_index, {})};
    asset.roots = {0};
    CHECK(asset.preorder() == std::vector<u32>{0, 2, 3, 1});
    asset.nodes[0].scale[0] = 2;
    const auto world = asset.world_transforms();
    CHECK(world[1].m[3] == 21);
    CHECK(world[3].m[3] == 2201);
    CHECK(world[4] == affine{});
}

TEST_CASE("a matrix replaces translation, rotation and scale") {
    asset_node node = at(7, no_index, {});
    node.rotation[3] = 2;  // not of unit length
    CHECK(node.local().m[0] == 1);
    CHECK(node.local().m[3] == 7);
    node.has_matrix = true;
    node.matrix.m[3] = 9;
    CHECK(node.local().m[3] == 9);
}

TEST_CASE("a mesh counts once per node and per instance in the totals") {
    scene_asset asset;
    asset.nodes = {at(0, no_index, {1}), at(0, 0, {}), at(0, no_index, {})};
    asset.roots = {0};
    asset.meshes.resize(1);
    asset.meshes[0].primitives.resize(1);
    asset.meshes[0].primitives[0].positions = std::vector<f32>(12);
    asset.meshes[0].primitives[0].indices = {0, 1, 2, 0, 2, 3};
    for (auto& node : asset.nodes) node.mesh = 0;
    asset.nodes[1].instances.resize(3);
    const asset_totals totals = totals_of(asset);
    CHECK(totals.shown_meshes == 4);
    CHECK(totals.triangles == 8);
    CHECK(totals.vertices == 16);
}
