#include "frame/used_extents.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/errors.hpp"
#include "shm/block_guard.hpp"

namespace carousel::ring {

u64 used_extent(const plane& p, std::size_t index, u32 d, const shm::used_extents& used) noexcept {
    if (!is_used_in_part(used, index) || d >= max_rank) return p.shape[d];
    return std::min(used.of[index][d], p.shape[d]);
}

plane used_plane(const frame_format& f, std::size_t index, const shm::used_extents& used) {
    plane out = f.planes[index];
    if (!is_used_in_part(used, index)) return out;
    if (out.strides.empty()) {
        out.strides.assign(out.shape.size(), element_bytes(out.type));
        for (std::size_t d = out.shape.size(); d-- > 1;) out.strides[d - 1] = out.strides[d] * out.shape[d];
    }
    for (u32 d = 0; d < out.shape.size(); ++d) out.shape[d] = used_extent(f.planes[index], index, d, used);
    return out;
}

void set_used(shm::used_extents& used, const frame_format& f, std::string_view name,
              std::span<const u64> extents) {
    const plane* p = f.find(name);
    if (p == nullptr) throw config_error(fmt::format("no plane \"{}\" in {}", name, f.describe()));
    const auto index = static_cast<std::size_t>(p - f.planes.data());
    const auto refuse = [&](const std::string& why) {
        throw config_error(fmt::format("the plane \"{}\" can't be used as ({}): {}, in {}", name,
                                       fmt::join(extents, ", "), why, f.describe()));
    };
    if (index >= shm::max_used_planes)
        refuse(
            fmt::format("only the first {} planes of a payload may be used in part", shm::max_used_planes));
    if (extents.size() > p->shape.size()) refuse(fmt::format("it has {} dimensions", p->shape.size()));
    for (std::size_t d = 0; d < extents.size(); ++d)
        if (extents[d] > p->shape[d]) refuse("it is smaller");
    const shm::block_open open;  // `used` may be in a header
    for (std::size_t d = 0; d < p->shape.size(); ++d)
        used.of[index][d] = d < extents.size() ? extents[d] : p->shape[d];
    used.planes |= 1U << index;
}

std::string describe_used(const frame_format& f, const shm::used_extents& used) {
    std::string out;
    for (std::size_t k = 0; k < f.planes.size(); ++k) {
        if (!is_used_in_part(used, k)) continue;
        out +=
            fmt::format("{}{} {} of {}", out.empty() ? "" : ", ", f.planes[k].name,
                        fmt::join(used_plane(f, k, used).shape, " x "), fmt::join(f.planes[k].shape, " x "));
    }
    return out;
}

}  // namespace carousel::ring
