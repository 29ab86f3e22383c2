#pragma once
// The spaces of this user, seen from outside: who holds them, what is in them, which are over. Any process
// may ask; nobody is attached by it.

#include <optional>
#include <string>
#include <vector>

#include "ipc/place.hpp"
#include "ipc/space_view.hpp"

namespace carousel::ipc {

/// held: a holder listens. orphaned: none does, but processes have the memory. dead: nobody has it.
enum class space_state : u8 { held, orphaned, dead };

struct found_space {
    std::string name;
    hold_place place;
    space_state state = space_state::dead;
    i32 holder = 0;  ///< by its record: the last one, where none listens; 0: unknown
    /// orphaned: the processes that have its memory; empty: they are of another pid namespace
    std::vector<i32> clients = {};
};

/// All that have a folder, by name.
[[nodiscard]] std::vector<found_space> spaces_here();
/// Empty: there is none of that name.
[[nodiscard]] std::optional<found_space> find_space(const std::string& name);
/// Asks the holder. Throws shm_error: it doesn't answer within a second, or not as a holder does.
[[nodiscard]] space_view inspect_space(const found_space& s);
/// Removes the folder of a dead one, behind another look with its lock held. Empty, or why it stays.
[[nodiscard]] std::string remove_dead(const found_space& s);

}  // namespace carousel::ipc
