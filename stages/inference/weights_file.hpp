#pragma once
// The file of a network: net_weights as they are, of a machine with its lowest byte first.

#include <memory>
#include <string>

#include "kernels/shape_net.hpp"

namespace carousel::stages {

/// Throws config_error: no such file, no network, or one of another shape.
[[nodiscard]] std::unique_ptr<kernels::net_weights> read_weights(const std::string& file);
/// Throws error that says what failed.
void write_weights(const std::string& file, const kernels::net_weights& w);

}  // namespace carousel::stages
