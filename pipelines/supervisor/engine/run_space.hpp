#pragma once
// A running pipeline is also a space (a shared-memory segment, shared/ipc): programs open it by name and
// share primitives while the pipeline runs. Its supervisor is the holder, with the same code as `carousel
// hold`. Before the first client connects it is a lock, a listening socket and a folder; the memory is made
// for that client.

#include <memory>
#include <string>

#include "ipc/holder.hpp"
#include "os/console.hpp"

namespace carousel::supervisor {

/// Call it before anything of the run is started. Throws config_error if another process holds a space of
/// that name. Returns null, and prints a warning, if this machine cannot provide a space; the run continues
/// without it.
[[nodiscard]] std::unique_ptr<ipc::holder> space_of_run(const std::string& name, u32 mib, console& out);

}  // namespace carousel::supervisor
