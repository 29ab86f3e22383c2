#pragma once
// Processes that a later process can find again: they were started with NAME=VALUE in their environment. For
// helpers that detach themselves (daemons) and so have no parent of the run; the run's runtime directory is
// the value, so no file has to be right about a pid.
//
// Who may call: any process, any thread. Reads /proc; only processes of this user are seen. A child of a
// marked process counts as marked also when it hides its environment.

#include <string>
#include <vector>

#include "core/types.hpp"
#include "shm/process_id.hpp"

namespace carousel::shm {

/// The mark of all of a run's MPS daemons and servers: CAROUSEL_MPS_DOMAIN=FOLDER.
[[nodiscard]] std::string mps_mark(const std::string& folder);
/// And that of one of them, by the folder of its sockets: CAROUSEL_MPS_PART=FOLDER.
[[nodiscard]] std::string mps_part_mark(const std::string& folder);
/// Folder of a run's MPS domain (its unix sockets), below the run's.
[[nodiscard]] std::string mps_folder(const std::string& runtime_directory);

/// Those that live, this process never among them.
[[nodiscard]] std::vector<process_id> marked_processes(const std::string& assignment);
/// SIGKILLs them and waits for their end, for `timeout_ns` at most. True: none is left.
bool end_marked_processes(const std::string& assignment, u64 timeout_ns) noexcept;

}  // namespace carousel::shm
