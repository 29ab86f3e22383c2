#pragma once
// What makes a run poorer, or holds it up, without ending it: each named with its culprit, in the log once,
// in `carousel ps` while it lasts, in the report for good. What happens then by rule stands in
// pipelines/README.md ("When it goes badly"). One thread.

#include <string>
#include <vector>

#include "core/json.hpp"
#include "shm/control_block.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

struct problem {
    std::string key;  ///< the same as long as it is the same one
    std::string text;
    u64 since_ns = 0, over_ns = 0;  ///< over_ns 0: it lasts
    bool logged = false;
};

class problems {
public:
    /// Looks about four times a second. Returns what is to be said now: those that have lasted for some time,
    /// each once.
    [[nodiscard]] std::vector<std::string> tick(const run_setup& s, const shm::control_block& c,
                                                const seat_list& seats, u64 now);
    /// Something that was over as soon as it was found; `present` shows it for a while.
    void report(const std::string& text, u64 now);
    /// Those that last, as texts.
    [[nodiscard]] nlohmann::json present(u64 now) const;
    /// All that were said, the first hundred: {"text", "at_s" (since `begin_ns`), "lasted_s" (null: to the
    /// end)}.
    [[nodiscard]] nlohmann::json all(u64 begin_ns) const;

private:
    std::vector<problem> now_, past_, reported_;
    u64 checked_ns_ = 0;
};

}  // namespace carousel::supervisor
