#pragma once
// The file of a network: the bytes of net_weights, little-endian.

#include <memory>
#include <string>

#include "kernels/shape_net.hpp"

namespace carousel::stages {

/// Throws config_error: no such file, not a network, or one of another shape.
[[nodiscard]] std::unique_ptr<kernels::net_weights> read_weights(const std::string& file);
/// Throws output_error with the cause.
void write_weights(const std::string& file, const kernels::net_weights& w);

}  // namespace carousel::stages
