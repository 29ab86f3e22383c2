// A build without CUDA has no access to GPU memory.
#include "core/errors.hpp"
#include "ipc/c/gpu_access.hpp"

namespace carousel::ipc {

std::shared_ptr<gpu_access> map_gpu(std::shared_ptr<attachment> to, int ordinal) {
    throw device_error(
        "mapping the GPU memory of a space: this build of Carousel has no CUDA: build it "
        "where nvcc is found");
}

}  // namespace carousel::ipc
