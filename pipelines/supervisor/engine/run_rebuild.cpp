#include "supervisor/engine/run_rebuild.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "ledger/ledger.hpp"
#include "ledger/ledger_fold.hpp"
#include "os/event_loop.hpp"
#include "supervisor/engine/block_custodian.hpp"
#include "supervisor/engine/device_switch.hpp"
#include "supervisor/engine/problems.hpp"
#include "supervisor/engine/progress.hpp"
#include "supervisor/engine/report.hpp"
#include "supervisor/engine/run_facts.hpp"
#include "supervisor/engine/run_phase.hpp"
#include "supervisor/processes/abandoned_processes.hpp"
#include "supervisor/processes/process_table.hpp"
#include "supervisor/processes/retire.hpp"
#include "supervisor/processes/seat_commands.hpp"
#include "supervisor/processes/standby.hpp"
#include "supervisor/stores/checkpoint_store.hpp"
#include "supervisor/stores/memory_store.hpp"

namespace carousel::supervisor {
namespace {

constexpr u32 most_in_row = 3;
constexpr std::size_t max_repair_records = 100;

/// True if another host sends the frames of this run. That host may have released the frames that all sinks
/// here have received, and cannot send these again. A stage that receives frames is recognised by its own
/// description, because its program may be a wrapper.
bool is_sent_its_frames(const run_setup& s) {
    return std::any_of(s.stages.begin(), s.stages.end(), [](const stage_setup& st) { return st.receives(); });
}

/// True if the stage's frames are written by a program outside, which cannot repeat them.
bool is_writer(const stage_setup& st) { return st.spec.is_port() && st.spec.inputs.empty(); }

bool has_port(const run_setup& s) {
    return std::any_of(s.stages.begin(), s.stages.end(),
                       [](const stage_setup& st) { return st.spec.is_port(); });
}

/// True if the run can go back to frames that a sink has: the sink gets them again, or is the program of a
/// port, which ignores them. A sending stage cannot send them again: the other host requests only frames that
/// it lacks, and a host that has all frames is gone.
bool can_deliver_again(const run_setup& s) {
    return std::any_of(s.stages.begin(), s.stages.end(),
                       [](const stage_setup& st) { return counts_frames(st) && !st.forwards_frames; });
}

/// True if a stage sends frames to another host.
bool sends_frames(const run_setup& s) {
    return std::any_of(s.stages.begin(), s.stages.end(),
                       [](const stage_setup& st) { return counts_frames(st) && st.forwards_frames; });
}

}  // namespace

/// True if a run with states can go back to frames below `first`, which all sinks have. A host to which the
/// frames are sent drops those that it has. It still waits for this run, as long as there is a frame that it
/// lacks.
bool run_rebuild::can_make_again(u64 first) const {
    const bool has_counted = std::any_of(setup_->stages.begin(), setup_->stages.end(),
                                         [](const stage_setup& st) { return counts_frames(st); });
    return can_deliver_again(*setup_) || (has_counted && first < known_end());
}

run_rebuild::run_rebuild(const run_setup& setup, std::string run_id, std::string helpers, event_loop& loop,
                         process_table& seats, memory_store& memory, checkpoint_store& checkpoints,
                         block_custodian& block, run_phase& phase, stall_guard& stall, problems& problems,
                         run_facts& facts, std::function<void()> save_state)
    : setup_(&setup),
      run_id_(std::move(run_id)),
      helpers_(std::move(helpers)),
      loop_(&loop),
      seats_(&seats),
      memory_(&memory),
      checkpoints_(&checkpoints),
      block_(&block),
      phase_(&phase),
      stall_(&stall),
      problems_(&problems),
      facts_(&facts),
      save_state_(std::move(save_state)) {}

void run_rebuild::watch_owner() {
    if (memory_->owner_pidfd() < 0) return;
    loop_->watch(memory_->owner_pidfd(), EPOLLIN, [this](u32) {
        if (phase_->is(phase::leaving)) return loop_->forget(memory_->owner_pidfd());
        begin(
            fmt::format("the owner of the rings' memory (carousel-alloc, pid {}) has died, so new processes "
                        "can't map the rings",
                        memory_->owner_pid()));
    });
}

/// Returns the frame at which a run with a damaged block continues. If uncertain frames can be produced
/// again, and be delivered again, this is the first of them.
u64 run_rebuild::first_trusted() const {
    return is_sent_its_frames(*setup_) || has_port(*setup_) || !can_deliver_again(*setup_) ||
                   setup_->has_state()
               ? first_to_deliver()
               : first_uncertain();
}

/// Returns the first uncertain frame. Frames that were in flight since the last check that found the block
/// sound may have been made from damaged words, and may have been delivered. The same holds for earlier
/// frames: for as many frames as the windows of all rings contain, but only for frames of which the ledgers
/// still have individual records (ledger_fold.hpp).
u64 run_rebuild::first_uncertain() const {
    const u64 lacking = first_to_deliver();
    u64 first = lacking, under_way = 0;
    for (u32 k = 0; k < block_->published().links; ++k) under_way += block_->published().link[k].window;
    for (u32 k = 0; k < block_->published().links; ++k)
        if (block_->saw(k)) first = std::min(first, block_->seen_tail(k));
    return std::min(std::max(first - std::min(first, under_way), folded_below(lacking)), known_end());
}

/// The frames below this number have no individual records in a ledger, so no sink can get them again.
u64 run_rebuild::folded_below(u64 lacking) const {
    u64 folded = 0;
    for (const stage_setup& st : setup_->stages) {
        if (!counts_frames(st)) continue;
        if (const auto ledger =
                telemetry::ledger_reader::open(telemetry::ledger_path(setup_->directory, st.spec.name)))
            folded = std::max(folded, ledger->summarize(lacking).folded);
    }
    return folded;
}

/// Records the uncertain frames that are not produced again: those below `first` have been delivered, and
/// those below `kept_below` continue from the memory of the rings.
void run_rebuild::record_uncertain_frames(u64 uncertain_from, u64 first, u64 kept_below) {
    if (uncertain_from < first)
        seats_->log_line(fmt::format(
            "frames {} to {} were delivered and may be wrong, because words of the control block "
            "were damaged; "
            "they can't be repeated, because the host that sent them may no longer have them, a port or "
            "another host has them, or a stage has a state",
            uncertain_from, first - 1));
    if (const u64 from = std::max(uncertain_from, first); from < kept_below)
        seats_->log_line(fmt::format(
            "frames {} to {} continue from memory and may be wrong, because words of the control block were "
            "damaged",
            from, kept_below - 1));
    const u64 to = std::max(first, kept_below);
    if (repair_recorded_ && uncertain_from < to) facts_->repairs.last.back().uncertain = {uncertain_from, to};
}

/// True if frames that are in the rings can't be made again: a program has written them, or the host that has
/// sent them can't send them again.
bool run_rebuild::loses_what_it_drops() const {
    return std::any_of(setup_->stages.begin(), setup_->stages.end(), [&](const stage_setup& st) {
        return is_writer(st) || (st.receives() && !is_sent_durably(setup_->directory, st.spec.name, run_id_));
    });
}

/// The known END, or the plan's END if none is known; frames from this number on do not exist.
u64 run_rebuild::known_end() const {
    return block_->end() == ring::end_stopping ? setup_->end : block_->end();
}

/// Returns the lowest frame that a source has not begun; of each source, at least the highest tail of its
/// ring that was observed. Sources whose words are damaged do not count; no_frame if all are.
u64 run_rebuild::first_unbegun() const {
    u64 lowest = telemetry::no_frame;
    for (u32 k = 0; k < block_->published().sources; ++k)
        if (const auto first = ring::first_unbegun_by(block_->block(), k))
            lowest =
                std::min(lowest, std::max(*first, block_->seen_tail(block_->published().source[k].link)));
    return lowest;
}

/// Returns the lowest frame that a sink has claimed but not recorded as committed, even if the block is
/// damaged. The next frame that a sink with `every` takes may be a frame that no source has begun. In this
/// case the result is the lowest frame that one of the sources has not begun, so that no frame before the
/// sink's next frame is left out. For any other sink the block need not be read, because every frame below
/// the sink's lowest frame of this kind is known to have been begun by a source.
u64 run_rebuild::first_to_deliver() const {
    std::vector<telemetry::counted_sink> sinks;
    for (u32 k = 0; k < setup_->stages.size(); ++k) {
        if (!counts_frames(setup_->stages[k])) continue;
        // the value for a sink without a ledger: the tail of its ring at the last check
        u64 tail = block_->published().first_ring_sequence;
        if (const u32 link = block_->published().stage[k].input_link[0]; block_->saw(link))
            tail = std::max(tail, block_->seen_tail(link));
        sinks.push_back({setup_->stages[k].spec.name, tail});
    }
    const telemetry::undelivered_frame undelivered = telemetry::find_undelivered(setup_->directory, sinks, 0);
    u64 lowest = undelivered.frame;
    if (std::any_of(setup_->stages.begin(), setup_->stages.end(), [&](const stage_setup& st) {
            return st.spec.every > 1 && st.spec.name == undelivered.sink;
        }))
        lowest = std::min(lowest, first_unbegun());
    if (lowest == telemetry::no_frame) {  // if no sink has a claim: the lowest of the last observed tails of
                                          // all rings
        for (u32 k = 0; k < block_->published().links; ++k)
            lowest = std::min(
                lowest, block_->saw(k) ? block_->seen_tail(k) : block_->published().first_ring_sequence);
        lowest = std::max(lowest, block_->published().first_ring_sequence);
    }
    return std::min(lowest, known_end());
}

/// If this run continues a lost run, the frames that the lost run delivered are neither lost nor counted
/// here.
void run_rebuild::begin_ledgers() const {
    if (facts_->first == 0) return;
    for (const stage_setup& st : setup_->stages)
        if (counts_frames(st))
            telemetry::begin_ledger(telemetry::ledger_path(setup_->directory, st.spec.name), facts_->first);
}

// A sink receives the frames from its position (`done_below`; empty: `first` for all sinks) on, again if it
// was ahead of that. Its records of these frames are removed, as are records beyond the end. A port's records
// are not: its program does not get these frames again (stages/sdk/port_session.hpp).
void run_rebuild::truncate_ledgers(u64 first, const std::vector<u64>& done_below) {
    for (u32 k = 0; k < setup_->stages.size(); ++k) {
        const stage_setup& st = setup_->stages[k];
        if (!counts_frames(st)) continue;
        const u64 from = k < done_below.size() && done_below[k] != shm::no_number ? done_below[k] : first;
        const std::string path = telemetry::ledger_path(setup_->directory, st.spec.name);
        const auto ledger = telemetry::ledger_reader::open(path);
        reset_claims(*setup_, k, from);
        if (!ledger || st.spec.is_port()) continue;
        if (const u64 size = ledger->size(); block_->end() != ring::end_unknown &&
                                             block_->end() != ring::end_stopping && size > block_->end()) {
            facts_->repairs.beyond_end += size - block_->end();
            seats_->log_line(
                fmt::format("{} has continued beyond the end of the run: its frames {} to {} are removed "
                            "from its account{}",
                            st.spec.name, block_->end(), size - 1,
                            setup_->pictures.empty() ? "" : ", their pictures are in " + setup_->pictures));
        }
        if (::truncate(path.c_str(), static_cast<off_t>(from * sizeof(telemetry::ledger_record))) != 0)
            throw output_error(
                fmt::format("truncating the ledger {} after frame {}: {}", path, from, errno_text(errno)));
    }
}

/// Returns the first frame that the sink lacks; no_number: it is an absent reader, for which no ring waits.
u64 run_rebuild::position_of(u32 stage, u64 first) const {
    const stage_setup& st = setup_->stages[stage];
    if (st.spec.skips() || (st.spec.optional && seats_->ledgers.claim_suspended(stage)))
        return shm::no_number;
    if (!counts_frames(st)) return first;
    const auto ledger =
        telemetry::ledger_reader::open(telemetry::ledger_path(setup_->directory, st.spec.name));
    if (!ledger) return first;
    const u64 lacking = ledger->first_undelivered(first);
    if (lacking == telemetry::no_frame) return first;
    // a sink with `every` may lack only a frame that does not exist yet
    return std::max(first, lacking - std::min(lacking, u64{st.spec.every} - 1));
}

/// Returns the frame after the last one, from `first` on, that the sink has delivered.
u64 run_rebuild::recorded_below(u32 stage, u64 first) const {
    const stage_setup& st = setup_->stages[stage];
    if (!counts_frames(st)) return first;
    const auto ledger =
        telemetry::ledger_reader::open(telemetry::ledger_path(setup_->directory, st.spec.name));
    if (!ledger) return first;
    const u64 size = std::max(first, ledger->size());
    const std::vector<telemetry::ledger_record> records = ledger->read(first, size - first);
    u64 below = records.size();
    while (below > 0 && !telemetry::is_marked(records[below - 1])) --below;
    return first + below;
}

// Sinks that are ahead of the slowest one do not get frames again, if these are in the rings.
ring::reentry_limits run_rebuild::limits_from(u64 first) const {
    ring::reentry_limits limits{first, known_end(), {}, {}, {}, facts_->first};
    for (u32 k = 0; k < setup_->stages.size(); ++k) {
        const bool sink = setup_->stages[k].is_sink();
        limits.delivered_below.push_back(sink ? position_of(k, first) : first);
        limits.recorded_below.push_back(sink ? recorded_below(k, first) : first);
        limits.made_once.push_back(is_writer(setup_->stages[k]));
    }
    return limits;
}

/// Reports the frames that continue, and each frame that a program has written and that is lost.
void run_rebuild::report_kept(const ring::kept_frames& kept) {
    if (kept.count() > 0)
        seats_->log_line(fmt::format("{} frames in the rings continue from memory", kept.count()));
    const shm::control_block& made = block_->published();
    for (u32 k = 0; k < kept.slots.size(); ++k) {
        const std::string& maker = setup_->stages[std::min(made.link[k].stage, made.stages - 1)].spec.name;
        for (u64 n = 0; n < kept.slots[k].size(); ++n) {
            if (kept.slots[k][n] != shm::none) continue;
            const u64 frame = kept.tail[k] + n;
            supervisor::list_abandoned(*seats_, {frame, maker, "lost in a rebuild"});
            seats_->log_line(fmt::format(
                "frame {} is lost: nothing proves its bytes in the ring of {}, and the program that "
                "wrote it can't repeat it; it continues as a tombstone, without a payload",
                frame, maker));
        }
        if (k < kept.unknown.size() && kept.unknown[k])
            seats_->log_line(fmt::format(
                "a frame in the ring of {} may be lost; its number is not known, because the words "
                "that show it are damaged",
                maker));
    }
}

// The report counts a frame as lost that a program has written and that a run without a rebuild does not
// deliver. If the block is damaged, the number of written frames is limited to one window above the last
// observed tail, which may be older than the frames.
void run_rebuild::note_written_frames() noexcept {
    const shm::control_block& made = block_->published();
    if (std::none_of(setup_->stages.begin(), setup_->stages.end(), is_writer)) return;
    for (u32 k = 0; k < made.links; ++k) {
        const u64 seen = std::max(made.first_ring_sequence, block_->saw(k) ? block_->seen_tail(k) : 0);
        const u64 written = made.first_ring_sequence + ring::load(block_->block().link[k].committed);
        phase_->note_lost_until(untrusted_ ? std::clamp(written, seen, seen + made.link[k].window) : written);
    }
}

/// Returns the frames that continue from memory, for a run whose stages have states. `first` falls to an
/// earlier frame if only the states before that frame are in memory, or in a checkpoint; the sinks get the
/// frames from there on again. If there is none, all states begin again.
ring::kept_frames run_rebuild::find_kept_with_states(u64& first, u64 trusted_below) {
    const u64 folded = folded_below(first);
    const bool is_sent = is_sent_its_frames(*setup_);
    bool repeats = !loses_what_it_drops() && can_make_again(first);
    u64 checkpoint = telemetry::no_frame;
    if (repeats)
        checkpoint =
            checkpoints_->newest(is_sent ? first : std::min(first, trusted_below)).value_or(checkpoint);
    // A host that sends durably has released the frames below the newest checkpoint.
    if (is_sent) repeats = checkpoint != telemetry::no_frame && checkpoint <= trusted_below;
    const bool has_checkpoint = repeats && checkpoint != telemetry::no_frame && checkpoint >= folded;
    if (untrusted_ && has_checkpoint) return continue_from_checkpoint(first, checkpoint);
    u64 lowest = first;
    if (repeats) {
        lowest = std::max({facts_->first, folded, first - std::min<u64>(first, shm::max_slots)});
        if (has_checkpoint) lowest = std::max(lowest, checkpoint);
        // Without its checkpoint, the first frame would begin with zeros.
        if (checkpoints_->has_lost_beginning()) lowest = std::max(lowest, facts_->first + 1);
    }
    const block_custodian::status_words words = block_->read_status_words(helpers_);
    std::optional<std::pair<u64, ring::kept_frames>> with_losses;
    u32 without_state = shm::none;
    for (u64 from = first;; --from) {
        ring::kept_frames kept = block_->find_kept(limits_from(from), words);
        const bool has_states = kept.without_state == shm::none;
        if (has_states && (!repeats || kept.lost().empty())) {
            first = from;
            return kept;
        }
        if (has_states && !with_losses) with_losses.emplace(from, std::move(kept));
        if (!has_states && without_state == shm::none) without_state = kept.without_state;
        if (from <= lowest) break;
    }
    if (has_checkpoint) return continue_from_checkpoint(first, checkpoint);
    if (with_losses) {
        first = with_losses->first;
        return std::move(with_losses->second);
    }
    const std::string lost = fmt::format(
        "stage {} has a state, and nothing proves in memory a state from which it could continue at frame {}",
        setup_->stages[without_state].spec.name, first);
    if (loses_what_it_drops()) throw shm_error(lost);
    seats_->log_line(fmt::format("{}, so all states begin again there", lost));
    if (first != facts_->first || checkpoints_->has_lost_beginning()) lose_states(first);
    return {};
}

/// Saved before the new block exists, because a supervisor that adopts it cannot see that a state is fresh.
void run_rebuild::lose_states(u64 first) {
    std::vector<u64>& at = facts_->repairs.state_lost_at;
    if (at.empty() || at.back() != first) at.push_back(first);
    save_state_();
}

ring::kept_frames run_rebuild::continue_from_checkpoint(u64& first, u64 checkpoint) {
    seats_->log_line(fmt::format(
        "the states continue from {}; the frames from {} on are made again",
        checkpoint == facts_->first ? "the beginning of the run" : "the checkpoint for that frame",
        checkpoint));
    first = checkpoint;
    return {};
}

void run_rebuild::begin(const std::string& why) {
    if (phase_->is(phase::ending) || phase_->is(phase::rebuilding)) return;
    if (memory_->owner_pidfd() >= 0) loop_->forget(memory_->owner_pidfd());
    seats_->log_line(fmt::format("{}: the run restarts at frame {}", why,
                                 untrusted_ ? first_trusted() : first_to_deliver()));
    phase_->begin_rebuild();
    // If the damage comes again before a frame is delivered, a process that lives on may be its cause.
    // A standby has its own device open.
    const bool moves = devices_ != nullptr && devices_->is_due();
    supervisor::pause_all(*seats_, !untrusted_, repairs_in_row_ <= 1 && !moves);
    crash_here(crash_point::rebuild_begun);
}

bool run_rebuild::remake_memory() {
    if (devices_ == nullptr) {
        memory_->remake(helpers_);
        return false;
    }
    const bool unended = has_unended(*seats_);
    if (!devices_->is_due() && unended) (void)devices_->fall_back("processes on the GPU do not end");
    devices_->apply();
    if (unended && !devices_->has_moved()) devices_->replace_memory();
    try {
        memory_->remake(helpers_);
    } catch (const device_error& e) {
        if (!devices_->fall_back(e.what())) throw;
        memory_->remake(helpers_);
    }
    return devices_->has_moved();
}

void run_rebuild::finish() {
    crash_here(crash_point::rebuild_fenced);
    const u64 now = now_ns();
    std::array<u64, shm::max_sources> due{};
    for (u32 k = 0; k < shm::max_sources; ++k) due[k] = ring::load(block_->block().next_source_ns[k]);
    const u64 step = setup_->fps > 0 ? static_cast<u64>(1e9 / setup_->fps) : 0;
    const bool end_is_fixed =
        facts_->end_requested && block_->end() != ring::end_stopping && block_->end() != ring::end_unknown;
    bool moved = false;
    try {
        // All processes have ended, are detached, or are revoked, so one check is exact. It finds damage that
        // no check has confirmed yet, and the damage for which a supervisor that has died began this rebuild.
        untrusted_ = untrusted_ || !block_->persistent_damage().empty();
        u64 first = untrusted_ ? first_trusted() : first_to_deliver();
        const u64 uncertain_from = untrusted_ ? first_uncertain() : telemetry::no_frame;
        block_->replace_crowded_rings();
        moved = remake_memory();
        crash_here(crash_point::memory_remade);
        // Frames of a damaged block may be wrong although each of them is proved, so they are made again if
        // that is possible. For a stage with a state it takes a checkpoint, because earlier states have left
        // their rings.
        ring::kept_frames kept;
        const u64 delivered_below = first;
        // Reading GPU memory takes longer than making its frames again.
        const bool loses = loses_what_it_drops();
        if (setup_->has_state()) {
            kept = find_kept_with_states(first, uncertain_from);
            checkpoints_->begin_again(first, kept.done_below);
        } else if (!untrusted_ || loses) {
            kept = block_->find_kept(limits_from(first), block_->read_status_words(loses ? helpers_ : ""));
        }
        truncate_ledgers(first, kept.done_below);
        crash_here(crash_point::ledgers_ended);
        shm::segment::remove(run_id_);
        crash_here(crash_point::block_removed);
        block_->make(first, known_end(), untrusted_, &kept);
        crash_here(crash_point::block_rebuilt);
        report_kept(kept);
        u64 kept_below = first;
        for (u32 k = 0; k < kept.slots.size(); ++k)
            kept_below = std::max(kept_below, kept.tail[k] + kept.slots[k].size());
        // Frames that another host has are not made again there.
        if (untrusted_)
            record_uncertain_frames(uncertain_from, sends_frames(*setup_) ? delivered_below : first,
                                    kept_below);
    } catch (const error& e) {
        seats_->log_line(fmt::format("the rebuild failed: {}", e.what()));
        note_written_frames();
        seats_->fail("carousel", e.what(), e.code());
        return phase_->abandon_rebuild();
    }
    for (u32 k = 0; k < shm::max_sources; ++k)
        block_->block().next_source_ns[k].store(due[k] <= now + 2 * step ? due[k] : now,
                                                std::memory_order_relaxed);
    block_->set_end(known_end());
    block_->begin_checks_again();
    stall_->restart(now);
    watch_owner();
    phase_->end_rebuild();
    seats_->attach_to(block_->block(), *memory_, &block_->published());
    seats_->block_fd = block_->descriptor();
    if (devices_ != nullptr) devices_->done(block_->published().first_ring_sequence);
    supervisor::resume_all(*seats_, untrusted_ || moved);
    untrusted_ = repair_recorded_ = false;
    phase_->drain_again(end_is_fixed);
}

bool run_rebuild::failed_by_damage() {
    if (phase_->is(phase::rebuilding) || repairs_in_row_ >= most_in_row) return false;
    const std::vector<ring::finding> found = block_->persistent_damage();
    if (found.empty()) return false;
    ++facts_->repairs.damaged;
    repair({fmt::format("{} has failed ({}), and the control block is damaged ({})", seats_->failure->label,
                        seats_->failure->what, findings_text(found)),
            found});
    return true;
}

void run_rebuild::repair(const block_damage& damage) {
    const u64 frame = first_to_deliver();
    repairs_in_row_ = repairs_in_row_ > 0 && frame <= repaired_at_frame_ ? repairs_in_row_ + 1 : 1;
    repaired_at_frame_ = std::max(repaired_at_frame_, frame);
    repair_record record{now_ns(), frame, damage.found.empty(), {}, {}};
    for (const ring::finding& f : damage.found) record.found.push_back(f.text());
    repair_recorded_ = facts_->repairs.last.size() < max_repair_records;
    if (repair_recorded_) facts_->repairs.last.push_back(std::move(record));
    problems_->report(damage.what, now_ns());
    if (repairs_in_row_ > most_in_row) {
        seats_->fail(
            "carousel",
            fmt::format("{}; the control block was rebuilt {} times, and no frame was delivered in between",
                        damage.what, most_in_row),
            exit_code::stage_failed);
        return phase_->end_now("");
    }
    untrusted_ = true;
    begin(damage.what);
}

}  // namespace carousel::supervisor
