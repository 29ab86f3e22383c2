#pragma once
// Data of a supervisor about its run that its successor cannot read from the control block: counters, times
// and intentions. Plain data; each member has one writer. takeover.hpp saves it for the successor.

#include <string>
#include <vector>

#include "core/json.hpp"
#include "shm/control_block.hpp"
#include "supervisor/plan/device_fallback.hpp"

namespace carousel::supervisor {

// The data that a dead supervisor has saved about its run: the member "run" of its state file (takeover.hpp).
// The data may be damaged.

class saved_run {
public:
    /// `state`: the contents of the file; null: it is lost.
    explicit saved_run(const nlohmann::json& state)
        : members_(state.is_object() ? state.value("run", nlohmann::json::object())
                                     : nlohmann::json::object()) {}

    /// Sets `into` to the member `key`. `into` is unchanged if there is no such member, or if its value has
    /// the wrong type.
    template <typename T>
    void read(const char* key, T& into) {
        if (members_.is_object() && members_.contains(key) && !read_member(members_, key, into))
            unreadable_.emplace_back(key);
    }
    /// The members that were read and have a wrong value.
    [[nodiscard]] const std::vector<std::string>& unreadable() const noexcept { return unreadable_; }

private:
    nlohmann::json members_;
    std::vector<std::string> unreadable_;
};

/// Describes one rebuild of the control block. The cause is that no frame advanced, or that a word had an
/// impossible value.
struct repair_record {
    u64 at_ns = 0, frame = 0;  ///< frame: the frame at which the run continued
    bool stalled = false;
    std::vector<std::string> found;  ///< the wrong words; empty: no word was wrong
    struct frames {
        u64 first = 0, end = 0;
    };
    /// Delivered frames that may have been made from damaged words, and that are not made again because
    /// another host has sent them.
    frames uncertain;
};
struct damage_account {
    u64 stalls = 0, damaged = 0;
    u64 words = 0;  ///< number of words with one flipped bit that were repaired without a rebuild
    /// number of frames that a sink has delivered beyond the end; these frames are removed from the account
    u64 beyond_end = 0;
    /// the frames at which stages have begun with a fresh state, because theirs was lost
    std::vector<u64> state_lost_at;
    std::vector<repair_record> last;  ///< the first hundred rebuilds
};

struct run_facts {
    u64 first = 0;  ///< the frames below this number were delivered by an earlier run
    u64 started_ns = 0, begun_ns = 0, finished_ns = 0;
    u64 rebuilds = 0;
    bool end_requested = false;
    int interrupts = 0, ended_by = 0;
    /// the first cause for which the end was requested: "SIGHUP", "--seconds", ...; "": the end was not
    /// requested
    std::string end_requested_by;
    int end_request_signal = 0;       ///< the number of the signal, if the first cause was a signal
    u32 taken_over = 0;               ///< number of times that a supervisor took the run over from a killed
                                      ///< one
    u32 stream_ended_by = shm::none;  ///< the source stage whose end of stream has set END
    damage_account repairs;
    fallback_state fallback;  ///< the devices in use
};

[[nodiscard]] nlohmann::json to_json(const run_facts& f);
/// Restores what to_json() returned; `created_ns` is used if started_ns is missing.
void restore(run_facts& f, saved_run& saved, u64 created_ns);

}  // namespace carousel::supervisor
