#pragma once
// carousel-alloc --repair: repairs the words of a space that are in GPU memory; used by the space's holder
// (ipc/gpu_repair.hpp). Spaces are an extra: space/repair.cpp, or no_repair.cpp in a build without extras.

namespace carousel::alloc {

/// Receives its instructions at the socket, repairs, replies, and returns the exit code. Throws error.
int repair(int socket);

}  // namespace carousel::alloc
