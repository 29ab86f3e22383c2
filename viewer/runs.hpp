#pragma once
// Which pipelines of this user run, from their run folders: $XDG_RUNTIME_DIR/carousel/NAME/ else /tmp/carousel-UID/NAME/, each with
// a run.json of its supervisor. Reads only; a record that can't be read is no run.

#include <optional>
#include <string>
#include <vector>

#include "shm/process_id.hpp"

namespace carousel::viewer {

struct run_info {
    std::string name, run_id, file, folder;
    shm::process_id supervisor;
    std::string pid_namespace;   ///< of the supervisor; "": unknown
    [[nodiscard]] std::string socket() const { return folder + "/control.sock"; }
};

[[nodiscard]] std::string runs_folder();
[[nodiscard]] std::optional<run_info> read_run(const std::string& folder);
/// False when the supervisor is known to be gone. One in another pid namespace can't be judged and counts as alive.
[[nodiscard]] bool lives(const run_info& r);
/// Sorted by name.
[[nodiscard]] std::vector<run_info> living_runs();

}  // namespace carousel::viewer
