#pragma once
// How a run lives, for those who watch it: does it have a supervisor, do its stages go on alone, has it ended
// and how? Reads only. A run's identity is (folder, run id): another run in the same folder is another run.
// Any process of the user, any thread.

#include <string>
#include <vector>

#include "run/directory.hpp"
#include "shm/control_block.hpp"
#include "shm/segment.hpp"

namespace carousel::run {

/// Those that can be watched: their supervisor lives, or stages go on without it. Sorted by name.
[[nodiscard]] std::vector<record> watchable_runs();

enum class life : u8 {
    led,    ///< it has a supervisor
    alone,  ///< its supervisor is gone, stages go on: another one may take them over
    over,
};
struct life_report {
    life state = life::led;
    u32 stages = 0;      ///< alone: so many go on
    std::string ending;  ///< over: "exit code 0"
};
/// `r` becomes the record of a supervisor that has taken the run over. `block`: its control block, as long as
/// it is mapped.
[[nodiscard]] life_report look_after(record& r, const shm::control_block& block);
/// "supervisor gone, 4 stages go on"
[[nodiscard]] std::string alone_text(u32 stages);

/// The block that the run has now, mapped for reading, if it is another one than `watched`: a run that begins
/// again keeps its name and its id, but its words and its memory are made anew. Empty: it is the same, or
/// there is none just now (the old one stays mapped).
[[nodiscard]] std::optional<shm::segment> made_anew(const record& r,
                                                    const shm::control_block& watched) noexcept;
/// "demo begins again with new memory"
[[nodiscard]] std::string made_anew_text(const record& r);

}  // namespace carousel::run
