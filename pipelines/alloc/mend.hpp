#pragma once
// carousel-alloc --mend: mends the words of a space that lie in GPU memory, for its holder
// (ipc/gpu_mending.hpp).

namespace carousel::alloc {

/// Hears at the socket what is to be mended, does it, answers and returns an exit code. Throws error.
int mend(int socket);

}  // namespace carousel::alloc
