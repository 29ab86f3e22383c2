#include "stages/sdk/payload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "core/errors.hpp"
#include "core/user_input.hpp"
#include "frame/image_format.hpp"
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
    // in a run, `used` is part of the frame's header, which is writable only while the block is open
    const shm::block_open open;
    ring::set_used(*used, in, name, {elements.begin(), elements.size()});
}

}  // namespace carousel::detail

namespace carousel {

frame_format image_format(u32 width, u32 height) {
    return ring::image_format_of(ring::pixel_format::rgba8, width, height);
}

const input_description& require_one_input(const configuration& with, std::string_view what) {
    if (with.inputs.size() != 1) {
        std::vector<std::string> names;
        std::transform(with.inputs.begin(), with.inputs.end(), std::back_inserter(names),
                       [](const auto& i) { return i.stage; });
        throw config_error(fmt::format(
            "stage \"{}\" takes one input, {}, but has {}{}; write inputs = [\"NAME\"]", with.stage, what,
            names.empty() ? "none" : std::to_string(names.size()) + ": ", fmt::join(names, ", ")));
    }
    return with.inputs.front();
}

void require_no_inputs(const configuration& with) {
    if (!with.inputs.empty()) {
        throw config_error(
            fmt::format("stage \"{}\" produces its own frames and has no inputs, but inputs names \"{}\"; "
                        "remove the key inputs",
                        with.stage, with.inputs.front().stage));
    }
}

image_size require_image(const configuration& with) {
    const input_description& input = require_one_input(with, "a picture");
    ring::require_format(input.format, image_format(0, 0), with.stage, input.stage);
    if (input.format.planes.front().name != "color") {
        throw config_error(
            fmt::format("stage \"{}\" reads the plane \"color\" as the first one, but stage \"{}\" writes {}",
                        with.stage, input.stage, input.format.describe()));
    }
    const auto& shape = input.format.planes.front().shape;
    return {static_cast<u32>(shape[1]), static_cast<u32>(shape[0])};
}

}  // namespace carousel
