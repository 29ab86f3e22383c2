#pragma once
// A running pipeline is a space, too (shared/ipc): programs open its name and share primitives for as long as
// it runs. Its supervisor is the holder, by the same code as `carousel hold`. Until somebody comes it is a
// lock, a listening socket and a folder; the memory is made for the first client.

#include <memory>
#include <string>

#include "ipc/holder.hpp"
#include "os/console.hpp"

namespace carousel::supervisor {

/// Before anything of the run is started. Throws config_error: a space of that name is held by somebody else.
/// Null, and said: there can't be one here, and the run goes without.
[[nodiscard]] std::unique_ptr<ipc::holder> space_of_run(const std::string& name, u32 mib, console& out);

}  // namespace carousel::supervisor
