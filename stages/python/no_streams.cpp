// A build without CUDA has no streams, and no frame on a GPU.
#include "core/errors.hpp"
#include "stages/python/streams.hpp"

namespace carousel::python {
namespace {
[[noreturn]] void refuse() { throw device_error("this build of Carousel has no CUDA"); }
}  // namespace

int current_gpu() { return -1; }
int gpu_of(void*) { refuse(); }
void follow(int, void*, void*) { refuse(); }
bool join_all(int, void*) { refuse(); }
void wait_for_all(int) { refuse(); }
void copy_to_host(int, void*, const void*, u64, void*) { refuse(); }
void copy_on_device(int, void*, const void*, u64, void*) { refuse(); }

}  // namespace carousel::python
