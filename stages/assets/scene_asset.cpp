#include "stages/assets/scene_asset.hpp"

#include <algorithm>

namespace carousel::stages {

affine asset_node::local() const {
    if (has_matrix) return matrix;
    return affine::from_parts(translation, rotation, scale);
}

std::vector<u32> scene_asset::preorder() const {
    std::vector<u32> out, open(roots.rbegin(), roots.rend());
    while (!open.empty()) {
        const u32 node = open.back();
        open.pop_back();
        out.push_back(node);
        open.insert(open.end(), nodes[node].children.rbegin(), nodes[node].children.rend());
    }
    return out;
}

std::vector<affine> scene_asset::world_transforms() const {
    std::vector<affine> out(nodes.size());
    for (const u32 i : preorder()) {
        const asset_node& node = nodes[i];
        out[i] = node.parent == no_index ? node.local() : out[node.parent].times(node.local());
    }
    return out;
}

asset_totals totals_of(const scene_asset& asset) {
    asset_totals out;
    for (const u32 i : asset.preorder()) {
        const asset_node& node = asset.nodes[i];
        if (node.mesh == no_index) continue;
        const u64 times = std::max<u64>(1, node.instances.size());
        out.shown_meshes += times;
        for (const asset_primitive& p : asset.meshes[node.mesh].primitives) {
            out.triangles += times * p.triangle_count();
            out.vertices += times * p.vertex_count();
        }
    }
    return out;
}

}  // namespace carousel::stages
