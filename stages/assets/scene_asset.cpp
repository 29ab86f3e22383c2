#include "stages/assets/scene_asset.hpp"

#include <algorithm>
#include <cmath>

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

namespace {

void make_unit(std::vector<f32>& q) {
    f64 sum = 0;
    for (const f32 x : q) sum += f64{x} * x;
    const f64 length = std::sqrt(sum);
    for (std::size_t k = 0; k < q.size(); ++k)
        q[k] = length > 0 ? static_cast<f32>(q[k] / length) : (k == 3 ? 1.0F : 0.0F);
}

/// Spherical interpolation; nearly equal rotations are interpolated linearly, because the sine would vanish.
void slerp(const f32* a, const f32* b, f64 s, f32* out) {
    f64 cosine = 0;
    for (u32 k = 0; k < 4; ++k) cosine += f64{a[k]} * b[k];
    const f64 side = cosine < 0 ? -1 : 1;
    const f64 angle = std::acos(std::min(1.0, std::abs(cosine))), sine = std::sin(angle);
    const f64 from = sine > 1e-6 ? std::sin((1 - s) * angle) / sine : 1 - s;
    const f64 to = sine > 1e-6 ? std::sin(s * angle) / sine : s;
    for (u32 k = 0; k < 4; ++k) out[k] = static_cast<f32>(from * a[k] + side * to * b[k]);
}

}  // namespace

void sample_channel(const animation_channel& channel, f32 time, std::vector<f32>& out) {
    const u32 n = channel.width;
    const bool cubic = channel.between == interpolation::cubic;
    const std::size_t stride = cubic ? std::size_t{3} * n : n;
    const auto value = [&](std::size_t key) {
        return channel.values.data() + key * stride + (cubic ? n : 0);
    };
    out.resize(n);
    const auto after = std::upper_bound(channel.times.begin(), channel.times.end(), time);
    const auto next = static_cast<std::size_t>(after - channel.times.begin());
    if (next == 0 || next == channel.times.size()) {
        std::copy_n(value(next == 0 ? 0 : next - 1), n, out.begin());
    } else {
        const std::size_t key = next - 1;
        const f64 span = f64{channel.times[next]} - channel.times[key];
        const f64 s = (f64{time} - channel.times[key]) / span;
        const f32 *const a = value(key), *const b = value(next);
        if (channel.between == interpolation::step) {
            std::copy_n(a, n, out.begin());
        } else if (cubic) {
            const f64 s2 = s * s, s3 = s2 * s;
            const f32 *const out_tangent = a + n, *const in_tangent = b - n;
            for (u32 k = 0; k < n; ++k)
                out[k] = static_cast<f32>((2 * s3 - 3 * s2 + 1) * a[k] +
                                          span * (s3 - 2 * s2 + s) * out_tangent[k] +
                                          (-2 * s3 + 3 * s2) * b[k] + span * (s3 - s2) * in_tangent[k]);
        } else if (channel.property == animated_property::rotation) {
            slerp(a, b, s, out.data());
        } else {
            for (u32 k = 0; k < n; ++k) out[k] = static_cast<f32>(a[k] + s * (f64{b[k]} - a[k]));
        }
    }
    if (channel.property == animated_property::rotation) make_unit(out);
}

}  // namespace carousel::stages
