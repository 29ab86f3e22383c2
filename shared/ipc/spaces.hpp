#pragma once
// The spaces of this user, seen from outside: their holders, their contents, and which are dead. Any process
// may query them without attaching.

#include <optional>
#include <string>
#include <vector>

#include "ipc/place.hpp"
#include "ipc/space_view.hpp"

namespace carousel::ipc {

/// held: a holder listens. orphaned: none listens, but processes map the memory. dead: no process maps it.
enum class space_state : u8 { held, orphaned, dead };

struct found_space {
    std::string name;
    hold_place place;
    space_state state = space_state::dead;
    i32 holder = 0;  ///< from its record: the last holder if none listens; 0: unknown
    /// orphaned: the processes that map its memory; empty: they are in another pid namespace
    std::vector<i32> clients = {};
};

/// All that have a folder, by name.
[[nodiscard]] std::vector<found_space> spaces_here();
/// Empty: there is none of that name.
[[nodiscard]] std::optional<found_space> find_space(const std::string& name);
/// Queries the holder. Throws shm_error: no reply within a second, or not a holder's reply.
[[nodiscard]] space_view inspect_space(const found_space& s);
/// Removes the folder of a dead space, after checking its state again with its lock held. Returns "", or why
/// the folder remains.
[[nodiscard]] std::string remove_dead(const found_space& s);

}  // namespace carousel::ipc
