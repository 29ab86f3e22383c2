#pragma once
// Describes the target of a wild write, based on the data that the dying process has stored in its entry
// (ring/exit_notes.hpp).

#include <string>

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// "a write into its input ring vertex, frame 12, plane color, offset 4096", "an overrun of its slot in the
/// ring fragment, frame 12, behind plane color, offset 3686400"; "": its entry records none, or it was ended
/// because its domain was. To be called before the frames of the process are requeued: until then the slot's
/// header still belongs to that frame. A number that matches nothing in the run is ignored.
[[nodiscard]] std::string wild_write_text(const process_table& t, const process& p);

/// Returns "plane color, offset 4096": the place of `offset` in a slot of that format.
[[nodiscard]] std::string place_in_slot(const nlohmann::json& format, u64 offset);

}  // namespace carousel::supervisor
