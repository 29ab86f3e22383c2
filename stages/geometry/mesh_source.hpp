#pragma once
// The source of a mesh: a procedural shape or a file, with its own texture, a checker, plain white or
// pictures.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/backend.hpp"
#include "kernels/kernels.hpp"
#include "kernels/mesh_layout.hpp"
#include "stages/geometry/mesh_data.hpp"
#include "stages/geometry/moving_mesh.hpp"
#include "stages/scene/scene_parameters.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {

// The textures of a mesh, as stored in its asset block.

class texture_set {
public:
    texture_set() = default;
    /// Reads the headers of the pictures, which determine the layout. `key`: the setting that errors name.
    /// `mipmaps`: creates the whole mip chain of each picture. `unreadable_is_white`: an unreadable picture
    /// is logged and omitted, and the picture's surface shows only the surface's colour factor. Throws
    /// settings_error.
    texture_set(std::vector<surface> surfaces, std::string key, bool mipmaps,
                bool unreadable_is_white = false);

    [[nodiscard]] bool empty() const noexcept { return surfaces_.empty(); }
    [[nodiscard]] u64 texels() const noexcept { return texels_; }
    /// Sets the counts that describe textures.
    void describe(kernels::mesh_counts& counts) const;
    /// Decodes the pictures, multiplies by the factors and builds the mip levels, into texture_texels(counts)
    /// words. Throws settings_error.
    void fill(u32* texels) const;
    /// One record per texture; stored in the block only if there are several textures.
    [[nodiscard]] std::span<const kernels::texture_record> records() const noexcept { return records_; }

private:
    std::vector<surface> surfaces_;
    std::vector<kernels::texture_record> records_;
    std::string key_;
    bool unreadable_is_white_ = false;
    u64 texels_ = 0;
};

class mesh_source {
public:
    /// Reads the keys mesh, triangles, texture, filter, full_materials, clip, speed and loop. Reads mesh
    /// files completely, because their counts determine the layout. Also reads the headers of the textures.
    /// Throws settings_error.
    [[nodiscard]] static mesh_source from(const settings& s);

    [[nodiscard]] const kernels::mesh_layout& layout() const noexcept { return layout_; }

    /// True if the mesh comes from a file. For such a mesh the default camera uses a three-quarter view.
    [[nodiscard]] bool is_file() const noexcept { return file_.has_value(); }

    /// The layout of the motion block; without matrices if the mesh does not move.
    [[nodiscard]] const kernels::motion_layout& motion() const noexcept { return motion_layout_; }
    /// The time of the animation at a time of the run, in seconds.
    [[nodiscard]] f64 clip_time(f64 seconds) const noexcept;
    /// Fills a block of motion().bytes bytes, as fill().
    void fill_motion(std::span<std::byte> block, device::context& context, device::queue& queue) const;
    /// The view with which the parameters begin: that of the key `camera`, if it is there.
    [[nodiscard]] start_view view() const;

    /// Fills a block of layout().bytes bytes that `queue` can access, and waits until the block is complete.
    /// Throws settings_error if a texture is broken, shm_error if the block is too small.
    void fill(std::span<std::byte> block, device::context& context, device::queue& queue) const;

private:
    enum class texture_kind { own, checker, white, pictures };

    void choose_texture(const settings& s);
    void fill_procedural(std::byte* block, device::context& context, device::queue& queue) const;
    void choose_maps(const settings& s);
    void choose_camera(const settings& s);
    void fill_materials(std::byte* block, device::context& context, device::queue& queue) const;
    void fill_from_file(std::byte* block, device::context& context, device::queue& queue) const;
    void fill_pictures(std::byte* block, device::context& context, device::queue& queue) const;
    void fill_texture(std::byte* block, device::queue& queue) const;
    void fill_levels(std::byte* block, device::context& context, device::queue& queue) const;

    std::optional<mesh_data> file_;  ///< none: procedural
    motion_data motion_;
    kernels::motion_layout motion_layout_;
    f64 speed_ = 1;
    bool loop_ = true;
    kernels::mesh_shape shape_ = kernels::mesh_shape::bumpy_sphere;
    u32 triangles_ = 0;
    std::optional<kernels::camera_state> camera_;
    texture_kind texture_ = texture_kind::own;
    texture_set pictures_, maps_;
    kernels::mesh_layout layout_;
};

}  // namespace carousel::stages
