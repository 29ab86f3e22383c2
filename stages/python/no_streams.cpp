// A build without CUDA has no streams, and no frame on a GPU comes here.
#include "core/errors.hpp"
#include "stages/python/streams.hpp"

namespace carousel::python {
namespace {
[[noreturn]] void refuse() { throw device_error("this build of Carousel has no CUDA"); }
}  // namespace

int current_gpu() { return -1; }
void follow(void*, void*) { refuse(); }
bool join_all(void*) { refuse(); }
void wait_for_all() { refuse(); }
void copy_to_host(void*, const void*, u64, void*) { refuse(); }
void copy_on_device(void*, const void*, u64, void*) { refuse(); }

}  // namespace carousel::python
