#include "stages/sdk/formats.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "core/errors.hpp"

namespace carousel {

frame_format image_format(u32 width, u32 height) {
    return {"carousel.image.rgba8", {{"color", element::u8_, {height, width, 4}, {}, 0}}, {}};
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
