#pragma once
// Makes and publishes the control block of a run, keeps a copy of the values that this process has written
// into the block, and detects damage. Any process of the user may have written anywhere in the block, so
// nothing in it is trusted: its static parts are compared with a copy, END and seats are compared with the
// values that this process has set, and every word is checked against the protocol
// (ring/check/block_check.hpp): once per second, after each death, and when no frame advances without a
// reason (progress.hpp). A word with one flipped bit is repaired if the other words determine its value, and
// a static part that no process acts on is restored from the copy. Other damage is returned to the caller,
// which rebuilds the block (run_rebuild.hpp). One thread; every member function reads a few hundred words at
// most and never blocks, except where a comment states it.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "ring/check/block_check.hpp"
#include "ring/check/repair.hpp"
#include "ring/reentry.hpp"
#include "shm/control_block.hpp"
#include "shm/segment.hpp"

namespace carousel::supervisor {

class live_parameters;
class memory_store;
struct process_table;
struct run_facts;
struct run_setup;

// The supervisor's backup of the stages' counters, used when the control block turns out to be damaged. A
// counter that has decreased, or grown by more than is possible in the elapsed time, is not restored. One
// thread.

class counter_backup {
public:
    /// Reads the counters. To be called about once per second.
    void sample(const shm::control_block& c, u32 stages);
    /// To be called when the block was checked and is sound, which means that the counts of torn frames up to
    /// now are valid. Frames that are torn between this call and a rebuild are delivered again, so their
    /// counts are dropped.
    void accept(const shm::control_block& c, u32 stages) noexcept;
    /// Writes the saved counters into a new block that is not published yet.
    void restore(shm::control_block& fresh, const shm::control_block& old, u32 stages, bool untrusted);

private:
    std::unique_ptr<shm::stage_counters[]> kept_;
    u64 torn_[shm::max_stages] = {};
};

// Decides when all words of the control block are checked against the protocol while frames advance, and
// which findings are confirmed. A check reads one word after the other, so a frame that advances during the
// check can appear as damage. But every state that the protocol leaves between two of its steps passes the
// check (tests/ring/test_block_check.cpp), regardless of the step at which a process has stopped or died. So
// a finding that is identical, word for word, in several consecutive checks cannot come from an advancing
// frame, because the words of such a frame change from one check to the next.
// Plain data: the engine calls it about fifty times per second.

class word_audit {
public:
    static constexpr u64 every_ns = ns_per_s;
    /// interval between two checks of a series; the findings of all checks of a series must agree
    static constexpr u64 apart_ns = 15 * ns_per_ms;
    static constexpr u32 checks = 6;

    /// `at_deaths_alone`: for tests; checks are due after deaths, and not after an interval.
    explicit word_audit(bool at_deaths_alone = false)
        : rest_ns_(at_deaths_alone ? 3600 * ns_per_s : every_ns) {}

    /// True if a check is due.
    [[nodiscard]] bool due(u64 now) const noexcept { return now >= next_ns_; }
    /// To be called after the death of a process: the next check is due now or, if a series of checks is in
    /// progress, after that series.
    void request_audit(u64 now) noexcept {
        audit_requested_ = seen_ != 0;
        if (!audit_requested_) next_ns_ = now;
    }
    /// Call this while there is nothing to check: it restarts the interval until the next check at `now`.
    void restart(u64 now) noexcept {
        audit_requested_ = false;
        rest(now);
    }
    /// Adds the findings of a check. Returns the findings that all checks of the series have in common. The
    /// result is empty if there are none, or if the series is not complete.
    [[nodiscard]] std::vector<ring::finding> add_sample(std::vector<ring::finding> found, u64 now) {
        if (seen_ == 0)
            standing_ = std::move(found);
        else
            std::erase_if(standing_, [&](const ring::finding& f) {
                return std::find(found.begin(), found.end(), f) == found.end();
            });
        if (standing_.empty()) {
            rest(now);
            return {};
        }
        next_ns_ = now + apart_ns;
        if (++seen_ < checks) return {};
        std::vector<ring::finding> stood = std::move(standing_);
        rest(now);
        return stood;
    }

private:
    void rest(u64 now) noexcept {
        standing_.clear();
        seen_ = 0;
        next_ns_ = std::exchange(audit_requested_, false) ? now : now + rest_ns_;
    }
    u64 rest_ns_;
    bool audit_requested_ = false;  ///< a process died during a series of checks
    std::vector<ring::finding> standing_;
    u32 seen_ = 0;
    u64 next_ns_ = 0;
};

// A word of the control block with one flipped bit that the engine has not repaired yet. The word is repaired
// when two consecutive checks compute the same value (ring/check/repair.hpp). If no two consecutive checks
// agree, the block is rebuilt.

struct pending_repair {
    static constexpr u32 max_checks = 8;  ///< about 160 ms, which is shorter than the time that stages wait
                                          ///< (ring::repair_timeout_ns)

    ring::damaged_word word;
    std::optional<u64> value;  ///< the value that the last check has computed; none: there is no such value
    u32 checks = 0;
};

/// Damage of the control block, or a run that stalls; in both cases the block must be rebuilt.
struct block_damage {
    std::string what;
    std::vector<ring::finding> found;  ///< the wrong words; empty: the run stalls although no word is wrong
};
/// Returns the first findings, for a message.
[[nodiscard]] std::string findings_text(const std::vector<ring::finding>& found);

class block_custodian {
public:
    block_custodian(const run_setup& setup, std::string run_id, memory_store& memory,
                    live_parameters& parameters, process_table& seats, run_facts& facts);

    // ---- the block
    /// Publishes a block for frames from `first_ring_sequence` on. If there is a former block, the new block
    /// replaces it and continues its counters; no process of the run is left, except revoked programs of
    /// ports. `untrusted`: the former block is damaged. `kept`: frames that enter the new block.
    void make(u64 first_ring_sequence, u64 end, bool untrusted = false,
              const ring::kept_frames* kept = nullptr);
    /// To be called before find_kept() and make(): gives other memory to each ring in which unfenced programs
    /// may still write to more buffers than it can spare. Throws shm_error.
    void replace_crowded_rings();
    /// To be called between replace_crowded_rings() and make(): by link, the rings whose memory was replaced
    /// and proves nothing.
    void mark_replaced(const std::vector<bool>& renewed);
    using status_words = std::vector<std::vector<device::status_word>>;  ///< by link and slot
    /// `gpu_helpers`: folder of carousel-alloc, which reads memory on GPUs; "": that memory proves nothing.
    [[nodiscard]] status_words read_status_words(const std::string& gpu_helpers) const;
    /// Finds the frames of the block that memory proves. `words`: of all rings.
    [[nodiscard]] ring::kept_frames find_kept(const ring::reentry_limits& limits,
                                              const status_words& words) const;
    /// Maps the block of a dead supervisor's run. Throws shm_error.
    void join();
    /// To be called after join(): computes the copy of the block's static parts from the plan. The copy has
    /// no END, because END is read from the block.
    void copy_from_plan();
    /// Writes the plan's frame timeouts, the only static parts that a reload changes, into the block and its
    /// copy. No process acts on the timeouts in the block. If this process dies before or while it writes,
    /// its adopter writes them.
    void publish_timeouts() noexcept;
    /// Called when a rebuilt block is in use, and all processes that used the former block have ended.
    void begin_checks_again();
    [[nodiscard]] bool exists() const noexcept { return segment_ != nullptr; }
    [[nodiscard]] shm::control_block& block() noexcept { return segment_->block(); }
    [[nodiscard]] const shm::control_block& block() const noexcept { return segment_->block(); }
    /// The block as it was published.
    [[nodiscard]] shm::control_block& published() noexcept { return *made_; }
    [[nodiscard]] const shm::control_block& published() const noexcept { return *made_; }
    [[nodiscard]] int descriptor() const noexcept { return segment_->descriptor(); }

    // ---- END: this process's value is authoritative; the word in the block is only checked against it
    [[nodiscard]] u64 end() const noexcept { return end_; }
    void set_end(u64 end);
    /// Sets END to the value that a stop has found in the words; returns damage if the value is impossible.
    [[nodiscard]] std::optional<block_damage> accept_end(u64 found);
    /// Requests every source to stop; ring::try_finish_stop() then finds END.
    void begin_stop();
    /// To be called after a takeover if the dead supervisor had begun the stop.
    void adopt_stop() noexcept { stop_requested_ = true; }
    [[nodiscard]] bool all_delivered() const noexcept;
    /// The highest tail of the ring that this process has observed; 0: it has observed none.
    [[nodiscard]] u64 seen_tail(u32 link) const noexcept { return saw(link) ? seen_tails_[link] : 0; }
    /// Returns true if the tail of the ring was observed in this block.
    [[nodiscard]] bool saw(u32 link) const noexcept { return link < seen_tails_.size(); }

    // ---- damage
    /// Called in each tick, before any decision is based on the block.
    [[nodiscard]] std::optional<block_damage> watch(u64 now);
    /// To be called after watch(): true if a word is damaged and may still be repaired.
    [[nodiscard]] bool is_suspect() const noexcept { return !pending_repairs_.empty(); }
    /// Checks all words if an audit is due (word_audit); returns the damage that a complete series of checks
    /// has confirmed.
    [[nodiscard]] std::optional<block_damage> audit(u64 now);
    /// Call this while there is nothing to check: it restarts the interval until the next audit.
    void restart_audit(u64 now) noexcept { audit_.restart(now); }
    [[nodiscard]] std::vector<ring::finding> check(bool words) const;
    /// Checks the block several times and returns the findings that do not change. Blocks for a few
    /// milliseconds.
    [[nodiscard]] std::vector<ring::finding> persistent_damage();
    /// To be called after a takeover if the dead supervisor has left no account of deaths.
    void forget_deaths() noexcept { deaths_then_ = ~u64{0}; }

private:
    void write_plan(shm::control_block& c, u64 first_ring_sequence, u64 end) const;
    [[nodiscard]] std::vector<u32> known_epochs() const;
    [[nodiscard]] std::vector<ring::incarnation_id> unfenced_programs() const;
    [[nodiscard]] ring::known_run what_is_known() const;
    [[nodiscard]] std::vector<ring::finding> check_without_parity(bool words) const;
    [[nodiscard]] std::optional<block_damage> repair_words();
    void repair_static_parts();
    [[nodiscard]] u64 surplus() const noexcept;

    const run_setup* setup_;
    std::string run_id_;
    memory_store* memory_;
    live_parameters* parameters_;
    process_table* seats_;
    run_facts* facts_;
    std::unique_ptr<shm::segment> segment_;
    shm::private_block made_;     ///< the block as it was published
    std::vector<bool> replaced_;  ///< by link: the next block's ring has other memory than that of this block
    std::vector<bool> renewed_;   ///< by link: that other memory has no frames
    u64 end_ = ring::end_unknown;
    bool stop_requested_ = false;  ///< the run was stopped, in this block or in one before it
    std::vector<u64> seen_tails_;  ///< the highest observed tail of each link
    counter_backup saved_counters_;
    u64 counters_saved_ns_ = 0;
    word_audit audit_;
    u64 audited_deaths_ = 0;  ///< value of seats_->account.deaths at the last audit
    /// the words in which the last check found one flipped bit
    std::vector<pending_repair> pending_repairs_;
    /// number of deaths at the time when this block was made; ~0: the number is unknown
    u64 deaths_then_ = 0;
};

}  // namespace carousel::supervisor
