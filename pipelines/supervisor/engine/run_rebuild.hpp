#pragma once
// Rebuilds memory and words during a run. A rebuild has one of three causes. In the first case, the owner of
// memory of kind ipc has died: running stages continue, but none of their successors could map the memory.
// The other two causes are that the control block is damaged (block_custodian.hpp), or that no frame advances
// and there is no reason for this (progress.hpp). All stages end, and the run continues at the first frame
// that a sink lacks. The authoritative data are the sinks' ledgers and this process's own memory. The old
// block may be the broken part, so what is taken from it is checked: counters that are plausible, and frames
// that the rings' memory proves (ring/reentry.hpp). A run that has been repaired three times without
// delivering a frame in between is ended.
//
// Programs of ports continue to run. Each of them joins the rebuilt run by itself. A frame that such a
// program has written and that nothing proves is reported and continues as a tombstone; no program reads a
// frame again that it has committed.

#include <functional>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "ring/reentry.hpp"

namespace carousel::supervisor {

class block_custodian;
class checkpoint_store;
class device_switch;
class event_loop;
class memory_store;
class problems;
class run_phase;
class stall_guard;
struct block_damage;
struct process_table;
struct run_facts;
struct run_setup;

class run_rebuild {
public:
    /// `helpers`: folder of carousel-alloc. `save_state`: saves the run's facts for a successor.
    run_rebuild(const run_setup& setup, std::string run_id, std::string helpers, event_loop& loop,
                process_table& seats, memory_store& memory, checkpoint_store& checkpoints,
                block_custodian& block, run_phase& phase, stall_guard& stall, problems& problems,
                run_facts& facts, std::function<void()> save_state);

    /// `devices` may give a rebuild other devices. To be called once, before any rebuild.
    void use_devices(device_switch& devices) noexcept { devices_ = &devices; }

    /// Watches the owner of ipc memory: if the owner dies, memory and words are rebuilt. Does nothing if
    /// there is no owner.
    void watch_owner();
    /// Begins a rebuild: ends all stages, after which finish() carries out the rest. Does nothing if the run
    /// ends, or is being rebuilt.
    void begin(const std::string& why);
    /// Like begin(), for a rebuild because of damage: also records the damage, and ends the run if the run
    /// was repaired too often.
    void repair(const block_damage& damage);
    /// To be called if a stage has failed for good, because damaged words may be the only cause of the
    /// failure. Returns true if words are damaged and a repair has begun.
    [[nodiscard]] bool failed_by_damage();
    /// To be called when all stages have ended and their CPU time is saved: allocates memory and words again,
    /// after which the run continues.
    void finish();
    /// To be called for a run that continues a lost run: this run neither treats the frames that the lost run
    /// delivered as lost, nor counts them.
    void begin_ledgers() const;
    /// The lowest frame that a sink lacks, also if the block is damaged.
    [[nodiscard]] u64 first_to_deliver() const;

private:
    [[nodiscard]] u64 known_end() const;
    [[nodiscard]] u64 first_unbegun() const;
    [[nodiscard]] u64 first_trusted() const;
    [[nodiscard]] u64 first_uncertain() const;
    void record_uncertain_frames(u64 uncertain_from, u64 first, u64 kept_below);
    [[nodiscard]] bool loses_what_it_drops() const;
    [[nodiscard]] bool can_make_again(u64 first) const;
    [[nodiscard]] ring::reentry_limits limits_from(u64 first) const;
    [[nodiscard]] ring::kept_frames find_kept_with_states(u64& first, u64 trusted_below);
    [[nodiscard]] ring::kept_frames continue_from_checkpoint(u64& first, u64 checkpoint);
    void lose_states(u64 first);
    [[nodiscard]] u64 folded_below(u64 lacking) const;
    [[nodiscard]] u64 position_of(u32 stage, u64 first) const;
    [[nodiscard]] u64 recorded_below(u32 stage, u64 first) const;
    void truncate_ledgers(u64 first, const std::vector<u64>& done_below);
    [[nodiscard]] bool remake_memory();
    void note_written_frames() noexcept;
    void report_kept(const ring::kept_frames& kept);

    const run_setup* setup_;
    std::string run_id_, helpers_;
    event_loop* loop_;
    process_table* seats_;
    memory_store* memory_;
    checkpoint_store* checkpoints_;
    block_custodian* block_;
    run_phase* phase_;
    stall_guard* stall_;
    problems* problems_;
    run_facts* facts_;
    std::function<void()> save_state_;
    device_switch* devices_ = nullptr;  ///< null: devices never change
    bool untrusted_ = false;  ///< true if words of the block that the present rebuild replaces are damaged
    /// true if the present repair was added to facts_->repairs.last, as the last entry
    bool repair_recorded_ = false;
    u64 repaired_at_frame_ = 0;
    u32 repairs_in_row_ = 0;
};

}  // namespace carousel::supervisor
