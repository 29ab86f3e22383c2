#pragma once
// The materials that a pipeline file can name, and the settings of a G-buffer.

#include "kernels/surface_planes.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {

/// Reads the keys materials, floor and floor_material. Throws settings_error, which lists the names.
[[nodiscard]] kernels::surface_look appearance_from(const settings& s);

}  // namespace carousel::stages
