#pragma once
// Spaces (shared/ipc) on the command line: list, describe, end. A run and a space of the same name cannot
// exist at the same time: the run's supervisor holds the space of its name.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ipc/spaces.hpp"

namespace carousel::supervisor {

struct seen_space {
    ipc::found_space found;
    std::optional<ipc::space_view> view = {};  ///< if the space is held
    std::string error_text = {};               ///< why `view` is empty although the space is held
};

/// Lists the spaces that are held or still in use, by name; with `name`, only that one. A run's own space is
/// listed only if it has been opened, or if `name` names it.
[[nodiscard]] std::vector<seen_space> see_spaces(const std::string& name = "");

/// As text for a terminal, and as JSON for programs.
[[nodiscard]] std::string spaces_text(const std::vector<seen_space>& all);
[[nodiscard]] nlohmann::json spaces_json(const std::vector<seen_space>& all);
/// "\n  lab  (a space, held by process 812)" per space.
[[nodiscard]] std::string list_of_spaces();

/// Asks the holder to end, as Ctrl-C does, and waits for it; returns the message to print. Throws
/// config_error if there is no holder, shm_error if it has not ended in time.
[[nodiscard]] std::string end_space(const ipc::found_space& s, f64 timeout_s);

/// Throws config_error if a run of that name is alive or continues without its supervisor: the space belongs
/// to it.
void require_no_run(const std::string& name);

}  // namespace carousel::supervisor
