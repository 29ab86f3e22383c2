// Checks the arguments and forwards them to the queue's backend.
#include "kernels/shape_net.hpp"

#include "core/errors.hpp"
#include "kernels/shape_net_entries.hpp"

namespace carousel::kernels {

void run_shape_net(device::queue& q, const shape_net_args& args) {
    if (args.batch == 0) throw config_error("no picture was given to the network; at least one is needed");
#if CAROUSEL_WITH_CUDA
    if (q.kind() == device::device_kind::cuda) return cuda::run_shape_net(q, args);
#endif
    cpu::run_shape_net(q, args);
}

}  // namespace carousel::kernels
