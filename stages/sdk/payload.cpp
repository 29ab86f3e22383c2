#include "stages/sdk/payload.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <vector>

#include "core/errors.hpp"
#include "core/user_input.hpp"
#include "shm/block_guard.hpp"

namespace carousel::detail {

const ring::plane& find_plane(const ring::frame_format& in, std::string_view name,
                              const ring::element* type) {
    const ring::plane* p = in.find(name);
    if (p == nullptr) {
        std::vector<std::string> names;
        for (const ring::plane& each : in.planes) names.push_back(each.name);
        throw config_error(fmt::format("no plane \"{}\" in {}{}", name, in.describe(),
                                       did_you_mean_clause(std::string(name), names)));
    }
    if (type != nullptr && p->type != *type)
        throw config_error(fmt::format("the plane \"{}\" was requested as {}, but it is {} in {}", name,
                                       ring::name_of(*type), ring::name_of(p->type), in.describe()));
    return *p;
}

const ring::plane& find_records(const ring::frame_format& in, std::string_view name, u64 bytes) {
    const ring::plane& p = find_plane(in, name, nullptr);
    if (p.bytes() < bytes)
        throw config_error(fmt::format("the plane \"{}\" has {} bytes, too few for a record of {}, in {}",
                                       name, p.bytes(), bytes, in.describe()));
    return p;
}

void set_used(shm::used_extents* used, const ring::frame_format& in, std::string_view name,
              std::initializer_list<u64> elements) {
    if (used == nullptr)
        throw std::logic_error("used extents can only be set in process(), for the frame's output");
    const shm::block_open open;  // opened because the extents of a run's frame are in its header
    ring::set_used(*used, in, name, {elements.begin(), elements.size()});
}

}  // namespace carousel::detail
