#pragma once
// From the materials of a scene asset to the records that kernels read (kernels/material_record.hpp).

#include <map>
#include <vector>

#include "kernels/material_record.hpp"
#include "stages/assets/scene_asset.hpp"
#include "stages/geometry/mesh_data.hpp"

namespace carousel::stages {

/// How a G-buffer shows the material: one that transmits light is transparent.
[[nodiscard]] alpha_mode shown_alpha(const asset_material& m);

class material_maker {
public:
    explicit material_maker(const scene_asset& asset) : asset_(asset) {}
    [[nodiscard]] kernels::material_record record_of(const asset_material& m);
    /// The attributes of vertex `i` of a primitive that has the material.
    [[nodiscard]] kernels::vertex_detail detail_of(const asset_material& m, const asset_primitive& p,
                                                   std::size_t i) const;
    /// The maps that the records name.
    [[nodiscard]] std::vector<surface> take_maps() { return std::move(maps_); }

private:
    [[nodiscard]] kernels::map_slot slot_of(const texture_slot& from, const std::vector<u32>& sets,
                                            bool is_color, u32 missing = ~0U);

    const scene_asset& asset_;
    std::vector<surface> maps_;
    std::map<std::pair<u32, bool>, u32> known_;  ///< number of a map by image and kind
};

/// The detail of a vertex on the back of its triangle.
void turn_tangent(kernels::vertex_detail& d);
/// The detail of a vertex after a transform.
[[nodiscard]] kernels::vertex_detail placed(kernels::vertex_detail d, const affine& at, bool mirrored);

}  // namespace carousel::stages
