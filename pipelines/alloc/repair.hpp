#pragma once
// carousel-alloc --repair: mends the words of a space that lie in GPU memory, for its holder
// (ipc/gpu_repair.hpp).

namespace carousel::alloc {

/// Hears at the socket what is to be mended, does it, answers and returns an exit code. Throws error.
int repair(int socket);

}  // namespace carousel::alloc
