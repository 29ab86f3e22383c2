#include "stages/sdk/configuration.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "core/errors.hpp"

namespace carousel {

std::string configuration::path(std::string_view written) const {
    return (std::filesystem::path(folder) / written).lexically_normal().string();
}

const frame_format* output_of(const description& d) {
    if (d.outputs.size() > 1)
        throw config_error(fmt::format("configure() names {} outputs, {} and {} among them; one is possible",
                                       d.outputs.size(), d.outputs[0].describe(), d.outputs[1].describe()));
    return d.outputs.empty() ? nullptr : &d.outputs.front();
}

frame_format* output_of(description& d) { return const_cast<frame_format*>(output_of(std::as_const(d))); }

}  // namespace carousel
