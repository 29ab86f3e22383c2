#pragma once
// The progress of a run: measures the rates, and reacts if no frame advances.

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "ledger/ledger.hpp"
#include "shm/control_block.hpp"

namespace carousel::supervisor {

class block_custodian;
class console;
struct block_damage;
struct process_table;
struct run_facts;
struct run_setup;

// Counts the frames of the running pipeline, computes its rates and shows the progress line. On a terminal
// the line is updated in place; elsewhere it is printed every 2 s.

/// Returns the number of the first frame that has not reached every blocking sink.
[[nodiscard]] u64 delivered(const run_setup& s, const shm::control_block& c) noexcept;

/// Frames per second, over about the last second.
class rate {
public:
    void sample(u64 count, u64 now) noexcept;
    [[nodiscard]] f64 per_second() const noexcept { return per_second_; }

private:
    u64 count_ = 0, at_ns_ = 0;
    f64 per_second_ = 0;
};

class progress {
public:
    progress(const run_setup& s, console& out);
    /// Called at each tick.
    void tick(const shm::control_block& c, u64 restarts, const std::string& state, u64 now);
    [[nodiscard]] f64 frames_per_second() const noexcept { return total_.per_second(); }
    [[nodiscard]] f64 frames_per_second(u32 stage) const noexcept { return stages_[stage].per_second(); }

private:
    const run_setup* setup_;
    console* console_;
    rate total_;
    std::vector<rate> stages_;
    u64 shown_ns_ = 0;
};

// Records when the run last made progress. Plain data: the engine adds samples about fifty times per second.

class stall_watch {
public:
    /// `print` is a fingerprint of the run: if a frame has advanced, it differs from the `print` of the
    /// previous sample. A gap of more than 1 s between samples means that this process was itself stopped or
    /// starved and has missed events; the measurement of the time without progress is therefore restarted.
    void add_sample(u64 print, u64 now) noexcept {
        const bool starved = now > seen_ns_ + ns_per_s;
        seen_ns_ = now;
        if (print == print_ && since_ns_ != 0 && !starved) return;
        print_ = print;
        since_ns_ = now;
    }
    /// Excludes `ns` nanoseconds from the time without progress, because the run itself was stopped for that
    /// long.
    void leave_out(u64 ns, u64 now) noexcept {
        if (since_ns_ != 0) since_ns_ = std::min(now, since_ns_ + ns);
    }
    /// Call this while there is nothing to watch: it restarts the measurement of the time without progress at
    /// `now`.
    void restart(u64 now) noexcept { since_ns_ = excused_ns_ = now; }
    /// To be called if a stage has a reason to wait. After that reason has ended, the other stages get one
    /// second to continue.
    void excuse(u64 now) noexcept { excused_ns_ = now; }
    /// True if the last reason to wait was found so recently that no new search is needed. A search is
    /// expensive (it reads words of every process, and /proc); without this limit a paused pipeline would be
    /// searched in every tick.
    [[nodiscard]] bool just_excused(u64 patience_ns, u64 now) const noexcept {
        return excused_ns_ != 0 && now < excused_ns_ + std::min(patience_ns, u64{ns_per_s}) / 8;
    }
    /// Time without progress.
    [[nodiscard]] u64 quiet_ns(u64 now) const noexcept {
        return since_ns_ != 0 && now > since_ns_ ? now - since_ns_ : 0;
    }
    /// True if no frame has advanced for `patience_ns`, and excuse() was not called in the last second.
    [[nodiscard]] bool is_stalled(u64 patience_ns, u64 now) const noexcept {
        return quiet_ns(now) >= patience_ns && now >= excused_ns_ + std::min(patience_ns, u64{ns_per_s});
    }

private:
    u64 print_ = 0, since_ns_ = 0, seen_ns_ = 0, excused_ns_ = 0;
};

// Handles a run in which no frame advances. If a stage has a reason to wait, the reason is logged; otherwise
// the block is rebuilt, because a word may be wrong although no check finds it.

class stall_guard {
public:
    stall_guard(const run_setup& setup, std::string run_id, process_table& seats, block_custodian& block,
                run_facts& facts)
        : setup_(&setup), run_id_(std::move(run_id)), seats_(&seats), block_(&block), facts_(&facts) {}

    /// Called in each tick in which frames may advance.
    [[nodiscard]] std::optional<block_damage> watch(u64 now);
    /// Called while there is nothing to watch: restarts the measurement of the time without progress.
    void restart(u64 now) noexcept { stall_.restart(now); }

private:
    [[nodiscard]] std::string undeliverable() const;

    const run_setup* setup_;
    std::string run_id_;
    process_table* seats_;
    block_custodian* block_;
    run_facts* facts_;
    stall_watch stall_;
    std::string reason_;  ///< the last logged reason for a stall
};

// Finds a frame that is lost on this host although another host still has it.

/// Determines the lowest frame that a sink still has to deliver. Returns this frame if it is lost, which
/// means that no ring that the sink reads contains the frame any more. `made` holds the static parts of the
/// block `c`; `find_undelivered` reads the ledgers. The processes may run during the call. Throws what
/// `find_undelivered` throws.
[[nodiscard]] std::optional<telemetry::undelivered_frame> find_lost_frame(
    const run_setup& s, const shm::control_block& made, const shm::control_block& c,
    const std::function<telemetry::undelivered_frame()>& find_undelivered);

}  // namespace carousel::supervisor
