#pragma once
// A motion block that uses every kind of channel, skins of one to eight joints, and morph targets, from a
// seed.

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/motion.hpp"

namespace carousel::kernels::testing {

struct motion_parts {
    std::vector<motion_node> nodes;
    std::vector<motion_channel> channels;
    std::vector<f32> keys;
    std::vector<motion_matrix> matrices;
    std::vector<motion_weight> weights;
    std::vector<moving_vertex> vertices;
    std::vector<influence> influences;
    std::vector<morph_delta> deltas;

    [[nodiscard]] motion_layout layout() const {
        const auto n = [](const auto& part) { return static_cast<u32>(part.size()); };
        return lay_out_motion(
            {n(nodes), n(channels), n(keys), n(matrices), n(weights), n(influences), n(deltas)}, n(vertices));
    }
    [[nodiscard]] std::vector<std::byte> block() const {
        const motion_layout l = layout();
        std::vector<std::byte> out(l.bytes);
        const auto put = [&](u64 at, const auto& part) {
            // An empty vector's data() may be null, which memcpy forbids even for no bytes.
            if (!part.empty()) std::memcpy(out.data() + at, part.data(), part.size() * sizeof(part[0]));
        };
        put(l.nodes, nodes), put(l.channels, channels), put(l.keys, keys), put(l.matrices, matrices);
        put(l.weights, weights), put(l.vertices, vertices), put(l.influences, influences);
        put(l.deltas, deltas);
        return out;
    }
    /// Appends a channel of `width` numbers per value with the given times and values; returns its number.
    u32 channel(key_interpolation between, u32 width, const std::vector<f32>& times,
                const std::vector<f32>& values) {
        channels.push_back({static_cast<u32>(keys.size()), static_cast<u32>(times.size()),
                            static_cast<u32>(keys.size() + times.size()), width, between, 0});
        keys.insert(keys.end(), times.begin(), times.end());
        keys.insert(keys.end(), values.begin(), values.end());
        return static_cast<u32>(channels.size() - 1);
    }
};

inline motion_parts random_motion(u32 seed, u32 nodes, u32 vertices) {
    std::mt19937 random(seed);
    const auto number = [&] { return static_cast<f32>(random()) / 2147483648.0F - 1.0F; };
    const auto below = [&](u32 n) { return static_cast<u32>(random() % n); };
    motion_parts m;
    for (u32 i = 0; i < nodes; ++i) {
        motion_node node;
        node.parent = i == 0 ? no_motion_index : below(i);
        node.has_matrix = i % 7 == 3 ? 1 : 0;
        for (f64& x : node.values) x = number();
        for (u32 property = 0; property < 3; ++property) {
            const u32 width = property == 1 ? 4 : 3;
            const auto between = static_cast<key_interpolation>(below(3));
            const u32 count = 1 + below(5), stride = between == key_interpolation::cubic ? 3 : 1;
            std::vector<f32> times, values;
            for (u32 k = 0; k < count; ++k)
                times.push_back((times.empty() ? 0.0F : times.back()) + 0.1F + std::abs(number()));
            for (u32 k = 0; k < count * stride * width; ++k) values.push_back(number());
            if (below(3) != 0) node.channel[property] = m.channel(between, width, times, values);
        }
        m.nodes.push_back(node);
    }
    const u32 of_weights = m.channel(key_interpolation::linear, 2, {0.0F, 2.0F}, {0.0F, 1.0F, 1.0F, -0.5F});
    m.weights = {{of_weights, 0, 0, 0}, {of_weights, 1, 0, 0}, {no_motion_index, 0, 0.25F, 0}};
    for (u32 i = 0; i < nodes; ++i) {
        motion_matrix matrix;
        matrix.node = below(nodes);
        for (f64& x : matrix.inner) x = number();
        m.matrices.push_back(matrix);
    }
    for (u32 i = 0; i < vertices; ++i) {
        moving_vertex v;
        for (f32& x : v.at.position) x = number();
        for (f32& x : v.at.normal) x = number();
        for (f32& x : v.at.texture) x = number();
        v.first_influence = static_cast<u32>(m.influences.size());
        v.influence_count = static_cast<u16>(1 + below(8));
        for (u32 k = 0; k < v.influence_count; ++k)
            m.influences.push_back({below(nodes), 1.0F / static_cast<f32>(v.influence_count)});
        v.first_delta = static_cast<u32>(m.deltas.size());
        v.delta_count = static_cast<u16>(below(4));
        for (u32 k = 0; k < v.delta_count; ++k)
            m.deltas.push_back({{number(), number(), number()}, {number(), number(), number()}, k, 0});
        m.vertices.push_back(v);
    }
    return m;
}

}  // namespace carousel::kernels::testing
