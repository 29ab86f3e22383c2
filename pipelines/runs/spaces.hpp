#pragma once
// Functions for spaces, used by the commands for runs. A space is shared memory that `carousel hold`, or a
// run's supervisor, holds for programs that are not stages. A run and a separate space of the same name
// cannot exist at the same time, because the run's supervisor holds the space of the run's name. Spaces are
// an extra: spaces/spaces.cpp implements these functions; in a build without extras, which has no spaces,
// no_spaces.cpp implements them.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/types.hpp"
#include "os/console.hpp"
#include "runs/clean.hpp"

namespace carousel::supervisor {

class run_extension;  // supervisor/engine/run_extension.hpp

/// Spaces that have been opened, for `carousel ps`.
struct spaces_report {
    std::string text;
    nlohmann::json rows = nlohmann::json::array();
    [[nodiscard]] bool empty() const { return rows.empty(); }
};
/// Reports all spaces that are held or still in use; with `name`, only that space.
[[nodiscard]] spaces_report report_spaces(const std::string& name = "");

/// Returns the names for completion. Omits a run's own space if no process has opened it.
[[nodiscard]] std::vector<std::string> space_names();
/// Returns true if a space of that name is held or still in use.
[[nodiscard]] bool is_space(const std::string& name);
/// Returns "\n lab (a space, held by process 812)" for each space, except the spaces of runs.
[[nodiscard]] std::string list_of_spaces();

/// Asks the holder of a space to end, as Ctrl-C does, and waits until the holder has ended; returns the
/// message to print. Returns nothing if there is no such space, or if it belongs to a living run. Throws
/// config_error if the space has no holder, shm_error if the holder has not ended in time.
[[nodiscard]] std::optional<std::string> end_space(const std::string& name, f64 timeout_s);

/// Returns the folders of spaces that no process uses. remove_dead_space(): checks again; returns "", or the
/// reason why the folder is kept.
[[nodiscard]] std::vector<leftover> dead_spaces();
[[nodiscard]] std::string remove_dead_space(const std::string& name);

/// Creates the space of a running pipeline, as an extension of its run: the run's supervisor is the holder,
/// and programs open the space by the run's name. Returns null if this build has no spaces.
[[nodiscard]] std::shared_ptr<run_extension> space_of_run();

}  // namespace carousel::supervisor
