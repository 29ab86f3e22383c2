#pragma once
// The textures of a mesh, as stored in its asset block.

#include <span>
#include <string>
#include <vector>

#include "kernels/mesh_layout.hpp"
#include "stages/geometry/mesh_data.hpp"

namespace carousel::stages {

class texture_set {
public:
    texture_set() = default;
    /// Reads the headers of the pictures, which determine the layout. `key`: the setting that errors name.
    /// `mipmaps`: creates the whole mip chain of each picture. `unreadable_is_white`: an unreadable picture
    /// is logged and omitted, so that its surface has only its factor. Throws settings_error.
    texture_set(std::vector<surface> surfaces, std::string key, bool mipmaps,
                bool unreadable_is_white = false);

    [[nodiscard]] bool empty() const noexcept { return surfaces_.empty(); }
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

}  // namespace carousel::stages
