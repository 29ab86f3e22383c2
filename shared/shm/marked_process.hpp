#pragma once
// Finds processes that an earlier process has started: they have NAME=VALUE in their environment. Used for
// helpers that detach themselves (daemons) and therefore have no parent in the run. The value is the run's
// runtime directory, so no pid file is needed that could be out of date.
//
// May be called from any process and any thread. Reads /proc; only processes of this user are visible. A
// child of a marked process counts as marked even if its environment does not show the mark.

#include <string>
#include <vector>

#include "core/types.hpp"
#include "shm/process_id.hpp"

namespace carousel::shm {

/// The mark of all MPS daemons and servers of a run: CAROUSEL_MPS_DOMAIN=FOLDER.
[[nodiscard]] std::string mps_mark(const std::string& folder);
/// The mark of one of these, given by the folder of its sockets: CAROUSEL_MPS_PART=FOLDER.
[[nodiscard]] std::string mps_part_mark(const std::string& folder);
/// Folder of a run's MPS domain (its unix sockets), inside the run's runtime directory.
[[nodiscard]] std::string mps_folder(const std::string& runtime_directory);

/// Returns the marked processes that are alive, except this process. `assignment` is NAME=VALUE.
[[nodiscard]] std::vector<process_id> marked_processes(const std::string& assignment);
/// Sends SIGKILL to the marked processes and waits until they have ended, at most `timeout_ns`. Returns true
/// if none is left.
bool end_marked_processes(const std::string& assignment, u64 timeout_ns) noexcept;

}  // namespace carousel::shm
