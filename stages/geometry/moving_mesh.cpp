#include "stages/geometry/moving_mesh.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "kernels/body/move.hpp"
#include "kernels/body/pose.hpp"
#include "stages/assets/asset_features.hpp"
#include "stages/assets/scene_files.hpp"
#include "stages/geometry/file_lights.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace {

using kernels::no_motion_index;

u32 size_of(std::size_t n) { return static_cast<u32>(n); }

/// The animation that the key "clip" names, or null.
const asset_animation* clip_of(const scene_asset& asset, const std::string& clip) {
    if (clip == "none" || (clip.empty() && asset.animations.empty())) return nullptr;
    if (clip.empty()) return &asset.animations.front();
    std::vector<std::string> names;
    for (std::size_t i = 0; i < asset.animations.size(); ++i) {
        if (asset.animations[i].name == clip || fmt::format("{}", i) == clip) return &asset.animations[i];
        names.push_back(asset.animations[i].name.empty() ? fmt::format("{}", i) : asset.animations[i].name);
    }
    throw settings_error(
        "clip", fmt::format("clip = \"{}\": {} has no such animation; expected none{}{}", clip, asset.name,
                            names.empty() ? "" : ", ", fmt::join(names, ", ")));
}

/// Fills motion_data from the scene and the origins of the mesh's vertices.
class motion_maker {
public:
    motion_maker(const scene_asset& asset, const asset_animation* clip,
                 const std::vector<vertex_origin>& origins, const mesh_data& mesh)
        : asset_(asset), clip_(clip), origins_(origins), mesh_(mesh) {}

    motion_data make() {
        add_nodes();
        add_channels();
        for (std::size_t i = 0; i < origins_.size(); ++i) add_vertex(i);
        return std::move(out_);
    }

private:
    [[nodiscard]] const asset_node& node_of(const vertex_origin& o) const { return asset_.nodes[o.node]; }
    [[nodiscard]] const asset_primitive& primitive_of(const vertex_origin& o) const {
        return asset_.meshes[node_of(o).mesh].primitives[o.primitive];
    }

    /// Node 0 fits the scene into the unit sphere; the nodes that move a vertex follow, parents first.
    void add_nodes() {
        std::vector<u32> depth(asset_.nodes.size(), 0);  // 0: not needed
        const auto need = [&](u32 node) {
            std::vector<u32> path;
            for (; node != no_index && depth[node] == 0; node = asset_.nodes[node].parent)
                path.push_back(node);
            u32 at = node == no_index ? 0 : depth[node];
            for (auto p = path.rbegin(); p != path.rend(); ++p) depth[*p] = ++at;
        };
        u32 last = no_index;
        for (const vertex_origin& o : origins_) {
            if (o.node == last) continue;
            last = o.node;
            need(o.node);
            if (const u32 skin = asset_.nodes[o.node].skin; skin != no_index)
                for (const u32 joint : asset_.skins[skin].joints) need(joint);
        }
        std::vector<u32> order;
        for (std::size_t i = 0; i < depth.size(); ++i)
            if (depth[i] > 0) order.push_back(size_of(i));
        std::stable_sort(order.begin(), order.end(), [&](u32 a, u32 b) { return depth[a] < depth[b]; });
        number_.assign(asset_.nodes.size(), no_motion_index);
        out_.nodes.emplace_back();
        for (const u32 i : order) {
            const asset_node& from = asset_.nodes[i];
            number_[i] = size_of(out_.nodes.size());
            kernels::motion_node node;
            node.parent = from.parent == no_index ? 0 : number_[from.parent];
            if (from.has_matrix) {
                node.has_matrix = 1;
                std::copy_n(from.matrix.m, 12, node.values);
            } else {
                std::copy_n(from.translation, 3, node.values);
                std::copy_n(from.rotation, 4, node.values + 3);
                std::copy_n(from.scale, 3, node.values + 7);
            }
            out_.nodes.push_back(node);
        }
    }

    void add_channels() {
        if (clip_ == nullptr) return;
        for (const animation_channel& from : clip_->channels) {
            const u32 node = number_[from.node];
            const bool weights = from.property == animated_property::weights;
            if (node == no_motion_index || (!weights && asset_.nodes[from.node].has_matrix)) continue;
            const u32 number = size_of(out_.channels.size());
            kernels::motion_channel to;
            to.first_time = size_of(out_.keys.size());
            to.count = size_of(from.times.size());
            to.width = from.width;
            to.between = from.between == interpolation::step    ? kernels::key_interpolation::step
                         : from.between == interpolation::cubic ? kernels::key_interpolation::cubic
                                                                : kernels::key_interpolation::linear;
            out_.keys.insert(out_.keys.end(), from.times.begin(), from.times.end());
            to.first_value = size_of(out_.keys.size());
            out_.keys.insert(out_.keys.end(), from.values.begin(), from.values.end());
            if (out_.keys.size() >= no_motion_index)
                throw settings_error("mesh", fmt::format("{}: its animation has more than {} numbers",
                                                         asset_.name, no_motion_index - 1));
            out_.channels.push_back(to);
            out_.duration = std::max(out_.duration, f64{from.times.back()});
            if (weights) {
                weight_channel_[from.node] = number;
            } else {
                out_.nodes[node].channel[static_cast<u32>(from.property)] = number;
            }
        }
    }

    /// The first morph weight of a node; the first call for a node adds its weights.
    u32 weights_of(u32 node) {
        const auto [known, is_new] = first_weight_.try_emplace(node, size_of(out_.weights.size()));
        if (!is_new) return known->second;
        const asset_node& n = asset_.nodes[node];
        const asset_mesh& mesh = asset_.meshes[n.mesh];
        const std::vector<f32>& constant = n.weights.empty() ? mesh.weights : n.weights;
        std::size_t targets = 0;
        for (const asset_primitive& p : mesh.primitives) targets = std::max(targets, p.targets.size());
        const auto channel = weight_channel_.find(node);
        for (std::size_t i = 0; i < targets; ++i)
            out_.weights.push_back({channel == weight_channel_.end() ? no_motion_index : channel->second,
                                    size_of(i), i < constant.size() ? constant[i] : 0.0F, 0});
        return known->second;
    }

    /// The influence of the whole matrix of a node, or of an instance that it has.
    u32 rigid_influence(u32 node, u32 instance) {
        const auto [known, is_new] =
            rigid_.try_emplace(std::pair(node, instance), size_of(out_.influences.size()));
        if (!is_new) return known->second;
        kernels::motion_matrix matrix;
        matrix.node = number_[node];
        const asset_node& n = asset_.nodes[node];
        if (!n.instances.empty()) std::copy_n(n.instances[instance].m, 12, matrix.inner);
        out_.influences.push_back({size_of(out_.matrices.size()), 1.0F});
        out_.matrices.push_back(matrix);
        return known->second;
    }

    /// The matrix of a skin's first joint; the others follow it.
    u32 matrices_of(u32 skin) {
        const auto [known, is_new] = first_joint_.try_emplace(skin, size_of(out_.matrices.size()));
        if (!is_new) return known->second;
        const asset_skin& s = asset_.skins[skin];
        for (std::size_t k = 0; k < s.joints.size(); ++k) {
            kernels::motion_matrix matrix;
            matrix.node = number_[s.joints[k]];
            std::copy_n(s.inverse_bind[k].m, 12, matrix.inner);
            out_.matrices.push_back(matrix);
        }
        return known->second;
    }

    /// Normalises the weights of a vertex; a vertex without weights follows the first joint.
    void add_influences(kernels::moving_vertex& to, const vertex_origin& o) {
        const u32 first = matrices_of(node_of(o).skin);
        const asset_primitive& p = primitive_of(o);
        to.first_influence = size_of(out_.influences.size());
        f64 sum = 0;
        for (u32 k = 0; k < p.influences; ++k) sum += p.weights[std::size_t{o.vertex} * p.influences + k];
        for (u32 k = 0; k < p.influences; ++k) {
            const std::size_t at = std::size_t{o.vertex} * p.influences + k;
            if (sum > 0 && p.weights[at] != 0)
                out_.influences.push_back({first + p.joints[at], static_cast<f32>(p.weights[at] / sum)});
        }
        if (out_.influences.size() == to.first_influence) out_.influences.push_back({first, 1.0F});
        to.influence_count = static_cast<u16>(out_.influences.size() - to.first_influence);
    }

    /// The unit normal of a triangle of a primitive, displaced by a morph target unless it is null.
    static void flat_normal(const asset_primitive& p, u32 triangle, const morph_target* target, f64 (&n)[3]) {
        f64 corner[3][3], u[3], v[3], length = 0;
        for (std::size_t k = 0; k < 3; ++k)
            for (std::size_t axis = 0; axis < 3; ++axis) {
                const std::size_t at = 3 * std::size_t{p.indices[3 * std::size_t{triangle} + k]} + axis;
                corner[k][axis] = p.positions[at];
                if (target != nullptr && !target->positions.empty()) corner[k][axis] += target->positions[at];
            }
        for (std::size_t axis = 0; axis < 3; ++axis)
            u[axis] = corner[1][axis] - corner[0][axis], v[axis] = corner[2][axis] - corner[0][axis];
        for (std::size_t axis = 0; axis < 3; ++axis) {
            n[axis] = u[(axis + 1) % 3] * v[(axis + 2) % 3] - u[(axis + 2) % 3] * v[(axis + 1) % 3];
            length += n[axis] * n[axis];
        }
        for (f64& x : n) x = length > 0 ? x / std::sqrt(length) : 0.0;
    }

    /// The factor that gives the normal of a vertex unit length, also for the deltas, which are added to it.
    static f64 normal_scale(const asset_primitive& p, const vertex_origin& o) {
        if (o.flat != no_index) return 1;
        const f32* const n = &p.normals[3 * std::size_t{o.vertex}];
        const f64 length = std::hypot(n[0], n[1], n[2]);
        return length > 0 ? 1 / length : 1;
    }

    void add_deltas(kernels::moving_vertex& to, const vertex_origin& o) {
        const asset_primitive& p = primitive_of(o);
        const f64 scale = normal_scale(p, o);
        to.first_delta = size_of(out_.deltas.size());
        for (std::size_t t = 0; t < p.targets.size(); ++t) {
            const morph_target& target = p.targets[t];
            kernels::morph_delta delta;
            delta.weight = size_of(t);
            f64 before[3] = {}, after[3] = {};
            if (o.flat != no_index) {
                flat_normal(p, o.flat, nullptr, before);
                flat_normal(p, o.flat, &target, after);
            }
            bool any = false;
            for (std::size_t axis = 0; axis < 3; ++axis) {
                const std::size_t at = 3 * std::size_t{o.vertex} + axis;
                if (!target.positions.empty()) delta.position[axis] = target.positions[at];
                if (o.flat != no_index) {
                    delta.normal[axis] = static_cast<f32>(after[axis] - before[axis]);
                } else if (!target.normals.empty()) {
                    delta.normal[axis] = static_cast<f32>(scale * target.normals[at]);
                }
                if (o.back) delta.normal[axis] = -delta.normal[axis];
                any = any || delta.position[axis] != 0 || delta.normal[axis] != 0;
            }
            if (any) out_.deltas.push_back(delta);
        }
        const std::size_t count = out_.deltas.size() - to.first_delta;
        if (count > UINT16_MAX)
            throw settings_error(
                "mesh", fmt::format("{}: a vertex has {} morph targets; at most {} are possible", asset_.name,
                                    count, UINT16_MAX));
        to.delta_count = static_cast<u16>(count);
    }

    /// Vertices of equal primitives and skins share influences and deltas: a small file can show a mesh very
    /// often.
    void add_vertex(std::size_t i) {
        const vertex_origin& o = origins_[i];
        const bool begins = i == 0 || o.node != origins_[i - 1].node ||
                            o.primitive != origins_[i - 1].primitive ||
                            o.instance != origins_[i - 1].instance;
        const asset_node& node = node_of(o);
        if (begins) {
            const auto [known, is_new] =
                first_vertex_.try_emplace(std::tuple(node.mesh, o.primitive, node.skin), i);
            shared_ = is_new ? nullptr : &out_.vertices;
            shared_at_ = known->second;
        }
        const asset_primitive& p = primitive_of(o);
        kernels::moving_vertex v;
        f64 normal[3] = {0, 0, 0};
        if (o.flat != no_index) {
            flat_normal(p, o.flat, nullptr, normal);
        } else {
            std::copy_n(&p.normals[3 * std::size_t{o.vertex}], 3, normal);
        }
        const f64 scale = normal_scale(p, o) * (o.back ? -1 : 1);
        for (std::size_t axis = 0; axis < 3; ++axis) {
            v.at.position[axis] = p.positions[3 * std::size_t{o.vertex} + axis];
            v.at.normal[axis] = static_cast<f32>(scale * normal[axis]);
        }
        std::copy_n(mesh_.vertices[i].texture, 2, v.at.texture);
        if (!p.targets.empty()) v.first_weight = weights_of(o.node);
        const bool skinned = node.skin != no_index && p.influences > 0;
        if (shared_ != nullptr) {
            const kernels::moving_vertex& same = (*shared_)[shared_at_++];
            v.first_delta = same.first_delta, v.delta_count = same.delta_count;
            v.first_influence = same.first_influence, v.influence_count = same.influence_count;
        } else {
            add_deltas(v, o);
            if (skinned) add_influences(v, o);
        }
        if (!skinned) v.first_influence = rigid_influence(o.node, o.instance), v.influence_count = 1;
        out_.vertices.push_back(v);
    }

    const scene_asset& asset_;
    const asset_animation* clip_;
    const std::vector<vertex_origin>& origins_;
    const mesh_data& mesh_;
    motion_data out_;
    std::vector<u32> number_;  ///< of each node of the asset in the motion, or no_motion_index
    std::map<u32, u32> weight_channel_, first_weight_, first_joint_;
    std::map<std::pair<u32, u32>, u32> rigid_;
    std::map<std::tuple<u32, u32, u32>, std::size_t> first_vertex_;
    const std::vector<kernels::moving_vertex>* shared_ = nullptr;  ///< not null: those of an equal primitive,
    std::size_t shared_at_ = 0;                                    ///< which continue here
};

/// Computes poses and moved vertices on the host.
class host_pose {
public:
    explicit host_pose(const motion_data& motion)
        : view_{motion.counts(),          size_of(motion.vertices.size()),
                motion.nodes.data(),      motion.channels.data(),
                motion.keys.data(),       motion.matrices.data(),
                motion.weights.data(),    motion.vertices.data(),
                motion.influences.data(), motion.deltas.data()},
          locals_(12 * motion.nodes.size()),
          matrices_(12 * motion.matrices.size()),
          weights_(motion.weights.size()) {}

    /// Calls visit(i, vertex) for all vertices at a time.
    template <typename Visit>
    void at(f64 time, const Visit& visit) {
        using namespace kernels::body;  // NOLINT: the functions of a pose
        for (u32 i = 0; i < view_.counts.nodes; ++i) local_matrix(view_, i, time, &locals_[u64{i} * 12]);
        for (u32 i = 0; i < view_.counts.matrices; ++i)
            pose_matrix(view_, locals_.data(), i, &matrices_[u64{i} * 12]);
        for (u32 i = 0; i < view_.counts.weights; ++i) weights_[i] = pose_weight(view_, i, time);
        for (u32 i = 0; i < view_.vertex_count; ++i)
            visit(i, moved_vertex(view_, matrices_.data(), weights_.data(), i));
    }

private:
    kernels::motion_view view_;
    std::vector<f64> locals_;
    std::vector<f32> matrices_, weights_;
};

/// Fits the mesh at nine times of its animation into the unit sphere, and gives `mesh` the pose at time 0.
unit_fit fit_and_pose(motion_data& motion, mesh_data& mesh, const std::string& name) {
    constexpr u32 steps = 8;
    kernels::motion_node& fit = motion.nodes.front();
    fit.has_matrix = 1;
    const affine identity;
    std::copy_n(identity.m, 12, fit.values);
    host_pose pose(motion);
    sphere_of_points sphere;
    const u32 last = motion.channels.empty() ? 0 : steps;
    for (u32 pass = 0; pass < 2; ++pass)
        for (u32 k = 0; k <= last; ++k)
            pose.at(motion.duration * k / steps, [&](u32, const kernels::shaded_vertex& v) {
                if (!std::isfinite(v.position[0]) || !std::isfinite(v.position[1]) ||
                    !std::isfinite(v.position[2]))
                    throw settings_error(
                        "mesh", fmt::format("{}: a pose moves a point out of the range of a float", name));
                if (pass == 0) {
                    sphere.include(v.position);
                } else {
                    sphere.reach(v.position);
                }
            });
    const f64 radius = sphere.radius(name);
    for (std::size_t axis = 0; axis < 3; ++axis) {
        fit.values[5 * axis] = 1.0 / radius;
        fit.values[4 * axis + 3] = -sphere.centre(axis) / radius;
    }
    pose.at(0, [&](u32 i, const kernels::shaded_vertex& v) {
        std::copy_n(v.position, 3, mesh.vertices[i].position);
        std::copy_n(v.normal, 3, mesh.vertices[i].normal);
    });
    return {{sphere.centre(0), sphere.centre(1), sphere.centre(2)}, radius};
}

bool has_skins_or_targets(const scene_asset& asset) {
    const std::vector<feature_use> used = features_of(asset);
    return std::any_of(used.begin(), used.end(), [](const feature_use& use) {
        return use.feature == asset_feature::skins || use.feature == asset_feature::morph_targets;
    });
}

}  // namespace

kernels::motion_counts motion_data::counts() const {
    return {size_of(nodes.size()),    size_of(channels.size()), size_of(keys.size()),
            size_of(matrices.size()), size_of(weights.size()),  size_of(influences.size()),
            size_of(deltas.size())};
}

kernels::motion_layout motion_data::layout() const {
    return kernels::lay_out_motion(counts(), size_of(vertices.size()));
}

void motion_data::fill(std::byte* block) const {
    const kernels::motion_layout l = layout();
    const auto put = [&](u64 at, const auto& part) {
        if (!part.empty()) std::memcpy(block + at, part.data(), part.size() * sizeof(part[0]));
    };
    put(l.nodes, nodes), put(l.channels, channels), put(l.keys, keys);
    put(l.matrices, matrices), put(l.weights, weights), put(l.vertices, vertices);
    put(l.influences, influences), put(l.deltas, deltas);
}

moving_mesh load_moving_mesh(const std::filesystem::path& path, const std::string& clip,
                             bool all_properties) {
    const scene_asset asset = read_scene_file(path, !all_properties);
    warn_of_hidden_features(asset, all_properties ? shown_by::surface : shown_by::picture);
    const asset_animation* const plays = clip_of(asset, clip);
    const bool posed = has_skins_or_targets(asset);
    moving_mesh out;
    try {
        std::vector<vertex_origin> origins;
        out.mesh = mesh_of_asset(asset, all_properties, plays != nullptr || posed ? &origins : nullptr);
        if (!origins.empty()) out.motion = motion_maker(asset, plays, origins, out.mesh).make();
        const bool moves = !out.motion.channels.empty();
        if (moves || posed) {
            place_lights_and_cameras(out.mesh, fit_and_pose(out.motion, out.mesh, asset.name));
            // Tangents do not move: the G-buffer computes them from the moved positions.
            for (std::size_t i = 0; i < out.mesh.materials.details.size(); ++i)
                out.mesh.materials.details[i].tangent[3] = origins[i].back ? 2.0F : 0.0F;
        } else {
            place_lights_and_cameras(out.mesh, fit_unit_sphere(out.mesh.vertices, asset.name));
        }
        if (!moves) out.motion = {};
        return out;
    } catch (const std::bad_alloc&) {
        throw settings_error("mesh",
                             fmt::format("{}: its motion needs more memory than there is", asset.name));
    }
}

mesh_data load_mesh(const std::filesystem::path& path, bool all_properties) {
    return load_moving_mesh(path, "none", all_properties).mesh;
}

}  // namespace carousel::stages
