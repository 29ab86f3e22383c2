#pragma once
// Conditions that degrade or delay a run without ending it. Each problem names its cause, is logged once, is
// listed by `carousel ps` while it lasts, and is kept in the report. pipelines/docs/failures.md states how
// the run reacts. One thread.

#include <string>
#include <vector>

#include "core/json.hpp"
#include "shm/control_block.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

struct problem {
    std::string key;  ///< identifies the problem; constant while the problem lasts
    std::string text;
    u64 since_ns = 0, over_ns = 0;  ///< over_ns 0: the problem still lasts
    bool logged = false;
};

class problems {
public:
    /// To be called about four times per second. Returns the messages to log now: one for each problem that
    /// has lasted long enough and was not logged yet.
    [[nodiscard]] std::vector<std::string> tick(const run_setup& s, const shm::control_block& c,
                                                const seat_list& seats, u64 now);
    /// Adds a problem that was already over when it was found; present() still lists it for a while.
    void report(const std::string& text, u64 now);
    /// The messages of the problems that still last.
    [[nodiscard]] nlohmann::json present(u64 now) const;
    /// All logged problems, at most a hundred: {"text", "at_s" (since `begin_ns`), "lasted_s" (null: until
    /// the end)}.
    [[nodiscard]] nlohmann::json all(u64 begin_ns) const;

private:
    std::vector<problem> now_, past_, reported_;
    u64 checked_ns_ = 0;
};

// A shortage of descriptors, processes, threads or memory: connections that cannot be accepted, and starts
// that were postponed. A stage that waits to be accepted does not count as late. If no process can be started
// or accepted for shortage_patience_ns, the run ends and reports the cause.

class shortage_watch {
public:
    explicit shortage_watch(process_table& seats) : seats_(&seats) {}

    /// Called if a connecting process cannot be accepted; `error`: the errno.
    void accept_failed(int error, u64 now);
    /// Called in each tick. `accepts`: the control socket accepts connections. `ending`: the run ends.
    void tick(bool accepts, bool ending, u64 now);
    [[nodiscard]] bool is_short() const noexcept { return since_ns_ != 0; }

private:
    process_table* seats_;
    u64 since_ns_ = 0;     ///< 0: there is no shortage
    std::string newest_;   ///< describes the newest shortage: the operation that failed, and the error
    bool logged_ = false;  ///< true if the present shortage of descriptors has been logged
};

}  // namespace carousel::supervisor
