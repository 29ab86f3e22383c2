#pragma once
// The file of a network: the bytes of net_weights, little-endian.

#include <memory>
#include <string>

#include "kernels/shape_net.hpp"

namespace carousel::stages {

/// Throws config_error if there is no such file, or if it is not a network of the expected shape.
[[nodiscard]] std::unique_ptr<kernels::net_weights> read_weights(const std::string& file);
/// Throws output_error with the cause.
void write_weights(const std::string& file, const kernels::net_weights& w);

}  // namespace carousel::stages
