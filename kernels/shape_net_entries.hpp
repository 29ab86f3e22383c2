#pragma once
// run_shape_net() of each backend.

#include "kernels/shape_net.hpp"

namespace carousel::kernels {

namespace cpu {
void run_shape_net(device::queue& q, const shape_net_args& args);
}
namespace cuda {
void run_shape_net(device::queue& q, const shape_net_args& args);
}

}  // namespace carousel::kernels
