#include "stages/geometry/texture_set.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "core/log.hpp"
#include "kernels/mip_chain.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {

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
                    log::warning("{}; its surfaces are drawn without it", e.what());
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
                log::warning("{}; its surfaces are drawn without it", e.what());
            }
        if (!picture) {
            std::fill_n(first, u64{r.width} * r.height, ~u32{0});
        } else {
            const texture_data& found = *picture;
            if (found.width != r.width || found.height != r.height) {
                throw settings_error(key_, fmt::format("the texture {} has changed since the run began",
                                                       s.image.file.string()));
            }
            std::memcpy(first, found.rgba.data(), found.rgba.size());
        }
        kernels::tint_texels(first, u64{r.width} * r.height, s.factor);
        kernels::build_mip_chain(first, r.width, r.height, r.levels);
    }
}

}  // namespace carousel::stages
