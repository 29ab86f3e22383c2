#pragma once
// Which pipelines of this user run, from their run folders: $XDG_RUNTIME_DIR/carousel/NAME/ else /tmp/carousel-UID/NAME/, each with
// a run.json of its supervisor. Reads only; a record that can't be read is no run.

#include <optional>
#include <string>
#include <vector>

#include "shm/control_block.hpp"
#include "shm/process_id.hpp"

namespace carousel::viewer {

struct run_info {
    std::string name, run_id, file, folder;
    shm::process_id supervisor;
    std::string pid_namespace, boot_id;   ///< of the supervisor; "": unknown
    [[nodiscard]] std::string socket() const { return folder + "/control.sock"; }
};

[[nodiscard]] std::string runs_folder();
[[nodiscard]] std::optional<run_info> read_run(const std::string& folder);
/// False when the supervisor is known to be gone. One in another pid namespace can't be judged and counts as alive.
[[nodiscard]] bool lives(const run_info& r);
/// Those that can be watched: their supervisor lives, or stages go on without it. Sorted by name.
[[nodiscard]] std::vector<run_info> living_runs();

/// Where a run that is watched stands. Its identity is (folder, run id): another run in the same folder is another run.
enum class run_life : u8 {
    led,      ///< it has a supervisor
    alone,    ///< its supervisor is gone, stages go on: another one may take them over
    over,
};
struct life_report {
    run_life life = run_life::led;
    u32 stages = 0;       ///< alone: so many go on
    std::string ending;   ///< over: "exit code 0"
};
/// `r` becomes the record of a supervisor that has taken the run over. `block`: its control block, as long as it is mapped.
[[nodiscard]] life_report look_after(run_info& r, const shm::control_block& block);
/// "supervisor gone, 4 stages go on"
[[nodiscard]] std::string alone_text(u32 stages);

}  // namespace carousel::viewer
