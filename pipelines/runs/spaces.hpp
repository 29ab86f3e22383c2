#pragma once
// What the command line says of spaces (shared/ipc): which there are, what is in them, how one ends. A run
// and a space of one name can't be at a time: the run's supervisor holds the space of its name.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ipc/spaces.hpp"

namespace carousel::supervisor {

struct seen_space {
    ipc::found_space found;
    std::optional<ipc::space_view> view = {};  ///< of one that is held
    std::string error_text = {};               ///< why there is none, although it is held
};

/// Those that somebody has, by name; with a name, that one. Of a run's own only one that has been opened, but
/// with its name.
[[nodiscard]] std::vector<seen_space> see_spaces(const std::string& name = "");

/// For a terminal, and for programs.
[[nodiscard]] std::string spaces_text(const std::vector<seen_space>& all);
[[nodiscard]] nlohmann::json spaces_json(const std::vector<seen_space>& all);
/// "\n  lab  (a space, held by process 812)" for each.
[[nodiscard]] std::string list_of_spaces();

/// Asks the holder to end, as Ctrl-C does, and waits for it; what is to be said of it. Throws config_error:
/// it has no holder; shm_error: it has not ended in time.
[[nodiscard]] std::string end_space(const ipc::found_space& s, f64 timeout_s);

/// Throws config_error when a run of that name lives or goes on without its supervisor: the space is its own.
void require_no_run(const std::string& name);

}  // namespace carousel::supervisor
