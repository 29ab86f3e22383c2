#include "stages/geometry/mesh_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

#include "core/log.hpp"
#include "core/user_input.hpp"
#include "kernels/assets.hpp"
#include "stages/geometry/mesh_data.hpp"
#include "stages/scene/scene_parameters.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace {

constexpr u32 checker_side = 512;
constexpr u32 most_triangles = u32{1} << 30;

bool is_file_name(const std::string& name) { return name.find_first_of("./") != std::string::npos; }

kernels::mesh_shape shape_named(const std::string& name) {
    const auto& names = kernels::mesh_shape_names();
    if (std::find(names.begin(), names.end(), name) == names.end()) {
        throw settings_error(
            "mesh",
            fmt::format(
                "mesh = \"{}\": expected one of {}, or the path of an .obj, .gltf, .glb or .ply file{}", name,
                fmt::join(names, ", "), did_you_mean_clause(name, names)));
    }
    return kernels::mesh_shape_from(name);
}

}  // namespace

mesh_source mesh_source::from(const settings& s) {
    mesh_source source;
    const std::string mesh = s.text("mesh", "bumpy-sphere");
    // if `mesh` is a file, this key is ignored and not refused, because the pipeline file may name a shape,
    // which --mesh has replaced by the file
    source.triangles_ = static_cast<u32>(s.integer("triangles", 100'000, 1, most_triangles));
    const std::string clip = s.text("clip", "");
    source.speed_ = s.number("speed", 1.0, -1000.0, 1000.0);
    source.loop_ = s.flag("loop", true);
    kernels::mesh_counts counts;
    if (is_file_name(mesh)) {
        moving_mesh read = load_moving_mesh(
            mesh, clip, s.flag("full_materials", false) && s.text("texture", "auto") == "auto");
        source.file_ = std::move(read.mesh);
        source.motion_ = std::move(read.motion);
        source.motion_layout_ = source.motion_.layout();
        if (const std::string why = facing_away(*source.file_, three_quarter_eye); !why.empty()) {
            log::warning(
                "{}: the front of the mesh is not visible: {}; back faces are not drawn, so reverse the "
                "order of the "
                "corners (Blender: Mesh > Normals > Flip), or move the camera",
                mesh, why);
        }
        counts.vertex_count = static_cast<u32>(source.file_->vertices.size());
        counts.triangle_count = static_cast<u32>(source.file_->indices.size() / 3);
    } else {
        (void)s.flag("full_materials", false);  // of files only, as `triangles` is of shapes only
        source.shape_ = shape_named(mesh);
        counts = kernels::procedural_counts(source.shape_, source.triangles_);
    }
    source.layout_ = kernels::lay_out_mesh(counts);
    source.choose_texture(s);
    source.choose_maps(s);
    source.choose_camera(s);
    return source;
}

start_view mesh_source::view() const {
    start_view out(is_file());
    out.camera = camera_;
    return out;
}

void mesh_source::choose_camera(const settings& s) {
    const std::string chosen = s.text("camera", "");
    if (chosen.empty() || !file_) return;  // of files only
    std::string known;
    for (std::size_t i = 0; i < file_->cameras.size(); ++i) {
        const file_camera& c = file_->cameras[i];
        if (chosen == c.name || chosen == fmt::format("{}", i)) {
            camera_ = c.state;
            return;
        }
        known += fmt::format("{}{} (\"{}\")", i > 0 ? ", " : "", i, c.name);
    }
    throw settings_error("camera", fmt::format("the mesh file has no perspective camera \"{}\"; it has {}",
                                               chosen, known.empty() ? "none" : known));
}

void mesh_source::choose_maps(const settings& s) {
    if (!file_ || file_->materials.records.empty()) return;
    mesh_materials& m = file_->materials;
    kernels::mesh_counts counts = layout_.counts;
    maps_ = texture_set(std::move(m.maps), "mesh", s.text("filter", "auto") != "bilinear", true);
    counts.material_count = static_cast<u32>(m.records.size());
    counts.map_count = static_cast<u32>(maps_.records().size());
    counts.map_texels = static_cast<u32>(maps_.texels());
    counts.masked_count = static_cast<u32>(m.masked.size() / 3);
    counts.blended_count = static_cast<u32>(m.blended.size() / 3);
    counts.light_count = static_cast<u32>(m.lights.size());
    layout_ = kernels::lay_out_mesh(counts);
}

void mesh_source::choose_texture(const settings& s) {
    kernels::mesh_counts counts = layout_.counts;
    const std::string texture = s.text("texture", "auto");
    const std::string filter = s.choice("filter", "auto", {"auto", "bilinear", "trilinear"});
    if (texture == "auto" && file_ && !file_->surfaces.empty()) {
        texture_ = texture_kind::pictures;
        pictures_ = texture_set(std::move(file_->surfaces), "mesh", filter != "bilinear", true);
    } else if (texture == "auto") {
        texture_ = file_ ? texture_kind::white : texture_kind::own;
    } else if (texture == "checker") {
        texture_ = texture_kind::checker;
    } else if (texture == "white") {
        texture_ = texture_kind::white;
    } else if (is_file_name(texture)) {
        texture_ = texture_kind::pictures;
        pictures_ = texture_set({surface{{texture, {}, {}}, {1, 1, 1}}}, "texture", filter != "bilinear");
    } else {
        (void)s.choice("texture", "auto", {"auto", "checker", "white", "FILE.png"});  // always throws
    }
    if (texture_ == texture_kind::pictures) {
        pictures_.describe(counts);
    } else {
        if (texture_ != texture_kind::own) {
            counts.texture_width = counts.texture_height =
                texture_ == texture_kind::checker ? checker_side : 1;
        }
        if (filter == "trilinear") {
            counts.texture_levels = kernels::mip_levels(counts.texture_width, counts.texture_height);
            // At least two texels, because the two colours of the knots are in different rows.
            if (texture_ == texture_kind::own) {
                const u32 shorter = std::min(counts.texture_width, counts.texture_height);
                counts.texture_levels =
                    std::min(counts.texture_levels, kernels::mip_levels(shorter, shorter) - 1);
            }
        }
    }
    layout_ = kernels::lay_out_mesh(counts);
}

void mesh_source::fill(std::span<std::byte> block, device::context& context, device::queue& queue) const {
    if (block.size() < layout_.bytes) {
        throw shm_error(
            fmt::format("the memory of the asset \"mesh\" has {} bytes, but {} are needed; check whether the "
                        "mesh file has grown since the start of the run",
                        block.size(), layout_.bytes));
    }
    if (file_) {
        fill_from_file(block.data(), context, queue);
    } else {
        fill_procedural(block.data(), context, queue);
    }
    if (texture_ == texture_kind::pictures) {
        fill_pictures(block.data(), context, queue);
        if (layout_.counts.material_count > 0) fill_materials(block.data(), context, queue);
        return;
    }
    if (texture_ != texture_kind::own) {
        fill_texture(block.data(), queue);
    }
    if (layout_.counts.texture_levels > 1) {
        fill_levels(block.data(), context, queue);
    }
}

f64 mesh_source::clip_time(f64 seconds) const noexcept {
    const f64 time = seconds * speed_, length = motion_.duration;
    if (!(length > 0)) return 0;
    if (!loop_) return std::clamp(time, 0.0, length);
    const f64 rounds = std::floor(time / length);
    return std::clamp(time - rounds * length, 0.0, length);
}

void mesh_source::fill_motion(std::span<std::byte> block, device::context& context,
                              device::queue& queue) const {
    if (block.size() < motion_layout_.bytes)
        throw shm_error(fmt::format(
            "the memory of the asset \"motion\" has {} bytes, but {} are needed; check whether the "
            "mesh file has grown since the start of the run",
            block.size(), motion_layout_.bytes));
    const auto staging = context.allocate_host(motion_layout_.bytes);
    std::memset(staging->host_data(), 0, motion_layout_.bytes);
    motion_.fill(staging->host_data());
    queue.copy(block.data(), staging->data(), motion_layout_.bytes);
    queue.drain();
}

void mesh_source::fill_procedural(std::byte* block, device::context& context, device::queue& queue) const {
    const auto own = kernels::lay_out_mesh(kernels::procedural_counts(shape_, triangles_));
    if (own.counts == layout_.counts) {
        kernels::generate_mesh(queue, {shape_, triangles_, block});
        queue.drain();
        return;
    }
    // If the texture is not the shape's own, or has more levels, its size differs. But the texture is the
    // last part of the block, so the data before it is copied unchanged.
    const auto whole = context.allocate(own.bytes);
    kernels::generate_mesh(queue, {shape_, triangles_, whole->data()});
    queue.copy(block, whole->data(), own.texture);
    if (texture_ == texture_kind::own) {
        queue.copy(block + layout_.texture, whole->data() + own.texture,
                   kernels::texture_texels(own.counts) * sizeof(u32));
    }
    const auto header = context.allocate_host(sizeof(kernels::mesh_header));
    kernels::mesh_header h;
    h.counts = layout_.counts;
    std::memcpy(header->host_data(), &h, sizeof h);
    queue.copy(block, header->data(), sizeof h);
    queue.drain();
}

void mesh_source::fill_from_file(std::byte* block, device::context& context, device::queue& queue) const {
    const auto staging = context.allocate_host(layout_.texture);
    std::byte* host = staging->host_data();
    std::memset(host, 0, layout_.texture);
    kernels::mesh_header header;
    header.counts = layout_.counts;
    std::memcpy(host, &header, sizeof header);
    for (std::size_t i = 0; i < file_->vertices.size(); ++i) {
        const mesh_vertex& v = file_->vertices[i];
        kernels::store_vertex(host, layout_, i,
                              {{v.position[0], v.position[1], v.position[2]},
                               {v.normal[0], v.normal[1], v.normal[2]},
                               {v.texture[0], v.texture[1]}});
    }
    std::memcpy(host + layout_.indices, file_->indices.data(), file_->indices.size() * sizeof(u32));
    if (layout_.counts.texture_count > 1) {
        auto* const numbers = reinterpret_cast<u32*>(host + layout_.texture_numbers);
        for (std::size_t i = 0; i < file_->vertices.size(); ++i) {
            numbers[i] = file_->vertices[i].surface;
        }
        std::memcpy(host + layout_.texture_records, pictures_.records().data(),
                    pictures_.records().size_bytes());
    }
    queue.copy(block, staging->data(), layout_.texture);
    kernels::bound_clusters(queue, {layout_, block, motion_layout_.moves()});
    queue.drain();
}

void mesh_source::fill_materials(std::byte* block, device::context& context, device::queue& queue) const {
    const u64 bytes = layout_.bytes - layout_.materials;
    const auto staging = context.allocate_host(bytes);
    std::memset(staging->host_data(), 0, bytes);
    const auto place = [&](u64 offset) { return staging->host_data() + (offset - layout_.materials); };
    const auto copy = [&](u64 offset, const auto& from) {
        if (!from.empty()) std::memcpy(place(offset), from.data(), from.size() * sizeof from[0]);
    };
    const mesh_materials& m = file_->materials;
    copy(layout_.materials, m.records);
    copy(layout_.details, m.details);
    copy(layout_.non_opaque_indices, m.masked);
    copy(layout_.non_opaque_indices + m.masked.size() * sizeof(u32), m.blended);
    copy(layout_.map_records, maps_.records());
    copy(layout_.lights, m.lights);
    if (maps_.texels() > 0) maps_.fill(reinterpret_cast<u32*>(place(layout_.maps)));
    queue.copy(block + layout_.materials, staging->data(), bytes);
    queue.drain();
}

void mesh_source::fill_texture(std::byte* block, device::queue& queue) const {
    if (texture_ == texture_kind::checker) {
        kernels::generate_texture(queue, {layout_, block});
    } else {
        queue.fill(block + layout_.texture, 255, 4);
    }
    queue.drain();
}

void mesh_source::fill_pictures(std::byte* block, device::context& context, device::queue& queue) const {
    const u64 bytes = kernels::texture_texels(layout_.counts) * sizeof(u32);
    const auto staging = context.allocate_host(bytes);
    pictures_.fill(reinterpret_cast<u32*>(staging->host_data()));
    queue.copy(block + layout_.texture, staging->data(), bytes);
    queue.drain();  // the copy must be complete before the staging memory is freed
}

/// Builds the mip levels of a texture that was computed on a device: the texture is copied to the host and
/// back once, so that all devices share one implementation.
void mesh_source::fill_levels(std::byte* block, device::context& context, device::queue& queue) const {
    const kernels::mesh_counts& c = layout_.counts;
    const u64 bytes = kernels::texture_texels(c) * sizeof(u32);
    const auto staging = context.allocate_host(bytes);
    queue.copy(staging->data(), block + layout_.texture,
               u64{c.texture_width} * c.texture_height * sizeof(u32));
    queue.drain();
    kernels::build_mip_chain(reinterpret_cast<u32*>(staging->host_data()), c.texture_width, c.texture_height,
                             c.texture_levels);
    queue.copy(block + layout_.texture, staging->data(), bytes);
    queue.drain();
}

texture_set::texture_set(std::vector<surface> surfaces, std::string key, bool mipmaps,
                         bool unreadable_is_white)
    : surfaces_(std::move(surfaces)), key_(std::move(key)), unreadable_is_white_(unreadable_is_white) {
    if (surfaces_.size() > kernels::max_textures) {
        throw settings_error(key_, fmt::format("the mesh has {} textures; at most {} are possible",
                                               surfaces_.size(), kernels::max_textures));
    }
    std::set<std::string> reported;
    for (surface& s : surfaces_) {
        texture_size size{1, 1};
        if (!s.image.none()) try {
                size = size_of_texture(s.image, key_);
            } catch (const settings_error& e) {
                if (!unreadable_is_white) throw;
                if (reported.insert(e.what()).second)
                    log::warning("{}; surfaces with this texture are drawn without it", e.what());
                s.image = {};
            }
        const u32 levels = mipmaps ? kernels::mip_levels(size.width, size.height) : 1;
        const u64 texels = kernels::texture_texels(size.width, size.height, levels);
        if (texels_ + texels > kernels::max_texels) {
            throw settings_error(
                key_,
                fmt::format("the textures of the mesh have more than {} texels in all; use smaller ones",
                            kernels::max_texels));
        }
        records_.push_back(
            kernels::describe_texture(size.width, size.height, levels, static_cast<u32>(texels_)));
        texels_ += texels;
    }
}

void texture_set::describe(kernels::mesh_counts& counts) const {
    const bool one = records_.size() == 1;
    counts.texture_width = one ? records_[0].width : 1;
    counts.texture_height = one ? records_[0].height : 1;
    counts.texture_levels = one ? records_[0].levels : 1;
    counts.texture_count = static_cast<u32>(records_.size());
    counts.texel_count = one ? 0 : static_cast<u32>(texels_);
}

void texture_set::fill(u32* texels) const {
    for (std::size_t i = 0; i < surfaces_.size(); ++i) {
        const surface& s = surfaces_[i];
        const kernels::texture_record& r = records_[i];
        u32* const first = texels + r.begin[0];
        std::optional<texture_data> picture;
        if (!s.image.none()) try {
                picture = load_texture(s.image, key_);
            } catch (const settings_error& e) {
                if (!unreadable_is_white_) throw;
                log::warning("{}; surfaces with this texture are drawn without it", e.what());
            }
        if (!picture) {
            std::fill_n(first, u64{r.width} * r.height, s.missing);
        } else {
            const texture_data& found = *picture;
            if (found.width != r.width || found.height != r.height) {
                throw settings_error(key_, fmt::format("the texture {} has changed since the run began",
                                                       s.image.file.string()));
            }
            std::memcpy(first, found.rgba.data(), found.rgba.size());
        }
        if (s.linear) {
            kernels::build_linear_mip_chain(first, r.width, r.height, r.levels);
        } else {
            kernels::tint_texels(first, u64{r.width} * r.height, s.factor);
            kernels::build_mip_chain(first, r.width, r.height, r.levels);
        }
    }
}

}  // namespace carousel::stages
