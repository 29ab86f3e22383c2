#include "runs/orphaned_run.hpp"

#include "core/errors.hpp"
#include "ring/words.hpp"
#include "shm/process_id.hpp"
#include "shm/segment.hpp"

namespace carousel::supervisor {
namespace {

u32 count_living(const std::string& run_id, bool standbys) try {
    const shm::segment s = shm::segment::observe(run_id);
    u32 count = 0;
    for (const shm::incarnation& e : s.block().entry) {
        const ring::entry_state state = ring::entry_word::of(ring::load(e.identity)).state;
        const bool counts = state == ring::entry_state::starting || state == ring::entry_state::live ||
                            (standbys && state == ring::entry_state::standby);
        count += counts && open_claimer(e, run_id) ? 1 : 0;
    }
    return count;
} catch (const error&) {
    return 0;
}

}  // namespace

shm::unique_fd open_claimer(const shm::incarnation& entry, const std::string& run_id) {
    const ring::entry_word w = ring::entry_word::of(ring::load(entry.identity));
    return shm::open_member({static_cast<i32>(w.pid), ring::load(entry.start_time)}, run_id);
}

u32 living_stages(const std::string& run_id) { return count_living(run_id, false); }
u32 living_processes(const std::string& run_id) { return count_living(run_id, true); }

}  // namespace carousel::supervisor
