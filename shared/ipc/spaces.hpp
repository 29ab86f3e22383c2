#pragma once
// Information about all spaces of this user: their holders, their contents, and whether they are dead. Any
// process may query spaces without attaching.

#include <optional>
#include <string>
#include <vector>

#include "ipc/place.hpp"
#include "ipc/space_view.hpp"

namespace carousel::ipc {

/// held: a holder listens. orphaned: no holder listens, but processes map the memory. dead: no process maps
/// the memory.
enum class space_state : u8 { held, orphaned, dead };

struct found_space {
    std::string name;
    hold_place place;
    space_state state = space_state::dead;
    i32 holder = 0;  ///< the holder's pid, from its record; if no holder listens, the pid of the last holder;
                     ///< 0: unknown
    /// for an orphaned space, the processes that map its memory; empty if they are in another pid namespace
    std::vector<i32> clients = {};
};

/// Returns all spaces that have a folder, in the order of their names.
[[nodiscard]] std::vector<found_space> spaces_here();
/// Returns nothing if there is no space of that name.
[[nodiscard]] std::optional<found_space> find_space(const std::string& name);
/// Queries the holder. Throws shm_error if there is no reply within a second, or if the reply is not the
/// reply of a holder.
[[nodiscard]] space_view inspect_space(const found_space& s);
/// Removes the folder of a dead space. Takes the folder's lock first, and checks again that the space is
/// dead. Returns "", or the reason why the folder remains.
[[nodiscard]] std::string remove_dead(const found_space& s);

}  // namespace carousel::ipc
