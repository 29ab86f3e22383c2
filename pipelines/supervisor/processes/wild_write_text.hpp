#pragma once
// Where a stray write was to go, in words: from what the dying process has left in its entry
// (ring/wild_write.hpp).

#include <string>

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// "a write into its input ring vertex, frame 12, plane color, offset 4096", "an overrun of its slot in the
/// ring fragment, frame 12, behind plane color, offset 3686400"; "": its entry tells of none, or
/// it ended for its domain's sake. Asked before its frames are thrown back: the slot's header still is that
/// frame's. A number that fits nothing of the run is told as none.
[[nodiscard]] std::string wild_write_text(const process_table& t, const process& p);

/// "plane color, offset 4096" of an offset in a slot of that format.
[[nodiscard]] std::string place_in_slot(const nlohmann::json& format, u64 offset);

}  // namespace carousel::supervisor
