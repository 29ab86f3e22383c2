#pragma once
// The textures of a mesh as they lie in its asset block.

#include <span>
#include <string>
#include <vector>

#include "kernels/mesh_layout.hpp"
#include "stages/geometry/mesh_data.hpp"

namespace carousel::stages {

class texture_set {
public:
    texture_set() = default;
    /// Reads the headers of the pictures, which determine the layout; `key` is the setting that errors name.
    /// With `mipmaps` each gets its whole chain. With `unreadable_is_white` a picture that can't be read is
    /// logged and left out: its surface has its factor alone. Throws settings_error.
    texture_set(std::vector<surface> surfaces, std::string key, bool mipmaps,
                bool unreadable_is_white = false);

    [[nodiscard]] bool empty() const noexcept { return surfaces_.empty(); }
    /// Sets the numbers that tell of textures.
    void describe(kernels::mesh_counts& counts) const;
    /// Decodes the pictures, multiplies in the factors and makes the mip levels, into texture_texels(counts)
    /// words. Throws settings_error.
    void fill(u32* texels) const;
    /// One each; what the block holds where there are several.
    [[nodiscard]] std::span<const kernels::texture_record> records() const noexcept { return records_; }

private:
    std::vector<surface> surfaces_;
    std::vector<kernels::texture_record> records_;
    std::string key_;
    bool unreadable_is_white_ = false;
    u64 texels_ = 0;
};

}  // namespace carousel::stages
