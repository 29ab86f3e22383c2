// The glTF reader: skins and animations.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stages/assets/gltf_reader.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace {

/// Column-major 4 x 4, whose last row is 0 0 0 1.
affine affine_of(const f32* columns, const gltf_value& skin) {
    constexpr f32 tolerance = 1e-3F;
    if (std::abs(columns[3]) > tolerance || std::abs(columns[7]) > tolerance ||
        std::abs(columns[11]) > tolerance || std::abs(columns[15] - 1) > tolerance)
        skin.refuse("an inverse bind matrix is not affine: the last row must be 0 0 0 1");
    affine out;
    for (u32 r = 0; r < 3; ++r)
        for (u32 c = 0; c < 4; ++c) out.m[4 * r + c] = columns[4 * c + r];
    return out;
}

}  // namespace

void gltf_reader::read_skins() {
    const gltf_value root = document_.root();
    for (u64 i = 0; i < asset_.skins.size(); ++i) {
        asset_skin made;
        const bool valid = optional_part([&] {
            const gltf_value skin = root.at("skins", i);
            made.name = skin.text_or("name", "");
            for (u64 k = 0; k < skin.count("joints"); ++k) {
                const u64 node = skin.integer_at("joints", k, UINT32_MAX);
                if (node >= asset_.nodes.size())
                    skin.refuse(fmt::format("joint {} is node {}, but the file has {}", k, node,
                                            asset_.nodes.size()));
                made.joints.push_back(static_cast<u32>(node));
            }
            if (made.joints.empty()) skin.refuse("it has no joints");
            made.inverse_bind.resize(made.joints.size());
            if (!skin.has("inverseBindMatrices")) return;
            const gltf_accessor matrices(document_, skin, "inverseBindMatrices", {"MAT4"});
            if (matrices.count() < made.joints.size())
                skin.refuse(fmt::format("it has {} inverse bind matrices for {} joints", matrices.count(),
                                        made.joints.size()));
            const std::vector<f32> columns = matrices.values();
            for (std::size_t k = 0; k < made.joints.size(); ++k)
                made.inverse_bind[k] = affine_of(&columns[16 * k], skin);
        });
        if (valid) asset_.skins[i] = std::move(made);
    }
    check_skins();
}

/// A node whose skin is invalid, or does not fit its mesh, has no skin.
void gltf_reader::check_skins() {
    for (std::size_t i = 0; i < asset_.nodes.size(); ++i) {
        asset_node& node = asset_.nodes[i];
        if (node.skin == no_index) continue;
        const std::size_t joints = asset_.skins[node.skin].joints.size();
        const bool fits =
            joints > 0 && optional_part([&] {
                for (const asset_primitive& p : asset_.meshes[node.mesh].primitives)
                    for (const u16 joint : p.joints)
                        if (joint >= joints)
                            document_.root()
                                .at("nodes", i)
                                .refuse(fmt::format("its mesh names joint {}, but its skin has {}", joint,
                                                    joints));
            });
        if (!fits) node.skin = no_index;
    }
}

void gltf_reader::read_animations() {
    const gltf_value root = document_.root();
    optional_part([&] {
        for (u64 i = 0; i < root.count("animations"); ++i) {
            const gltf_value animation = root.at("animations", i);
            asset_animation made;
            optional_part([&] { made.name = animation.text_or("name", ""); });
            optional_part([&] {
                for (u64 k = 0; k < animation.count("channels"); ++k) {
                    optional_part([&] {
                        auto channel = read_channel(animation, k);
                        if (!channel) return;
                        made.duration = std::max(made.duration, channel->times.back());
                        made.channels.push_back(*std::move(channel));
                    });
                }
            });
            asset_.animations.push_back(std::move(made));
        }
    });
}

std::optional<animation_channel> gltf_reader::read_channel(const gltf_value& animation, u64 number) {
    const gltf_value channel = animation.at("channels", number), target = channel.member("target");
    if (!target.has("node")) return std::nullopt;  // an extension names the target
    animation_channel out;
    (void)document_.referred(target, "node", "nodes");
    out.node = static_cast<u32>(target.integer("node", 0, UINT32_MAX));
    const std::string path = target.text_or("path", "");
    if (path == "translation")
        out.property = animated_property::translation;
    else if (path == "rotation")
        out.property = animated_property::rotation;
    else if (path == "scale")
        out.property = animated_property::scale;
    else if (path == "weights")
        out.property = animated_property::weights;
    else
        target.refuse(fmt::format("\"path\" = \"{}\": expected translation, rotation, scale or weights",
                                  path.substr(0, 20)));
    const u64 samplers = animation.count("samplers"), named = channel.integer("sampler", 0, UINT32_MAX);
    if (named >= samplers)
        channel.refuse(fmt::format("it names sampler {}, but the animation has {}", named, samplers));
    const gltf_value sampler = animation.at("samplers", named);
    const std::string between = sampler.text_or("interpolation", "LINEAR");
    if (between == "STEP")
        out.between = interpolation::step;
    else if (between == "CUBICSPLINE")
        out.between = interpolation::cubic;
    else if (between != "LINEAR")
        sampler.refuse(fmt::format("\"interpolation\" = \"{}\": expected STEP, LINEAR or CUBICSPLINE",
                                   between.substr(0, 20)));
    out.times = gltf_accessor(document_, sampler, "input", {"SCALAR"}).values();
    for (std::size_t k = 1; k < out.times.size(); ++k)
        if (!(out.times[k] > out.times[k - 1]))
            sampler.refuse(fmt::format("time {} is not greater than the one before it", k));
    out.values = gltf_accessor(document_, sampler, "output", {"SCALAR", "VEC3", "VEC4"}).values();
    const u64 per_time = out.times.size() * (out.between == interpolation::cubic ? 3 : 1);
    if (out.property == animated_property::weights) {
        out.width = static_cast<u32>(out.values.size() / per_time);
        const u32 mesh = asset_.nodes[out.node].mesh;
        const auto* const primitives = mesh == no_index ? nullptr : &asset_.meshes[mesh].primitives;
        if (primitives != nullptr && !primitives->empty() && primitives->front().targets.size() != out.width)
            sampler.refuse(fmt::format("it has {} weights per time, but the mesh has {} morph targets",
                                       out.width, primitives->front().targets.size()));
    } else {
        out.width = out.property == animated_property::rotation ? 4 : 3;
    }
    if (out.width == 0 || out.values.size() != per_time * out.width)
        sampler.refuse(fmt::format("it has {} numbers for {} times", out.values.size(), out.times.size()));
    return out;
}

}  // namespace carousel::stages
