#include "supervisor/engine/run_rebuild.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "ledger/ledger.hpp"
#include "ledger/ledger_fold.hpp"
#include "os/event_loop.hpp"
#include "supervisor/engine/block_custodian.hpp"
#include "supervisor/engine/problems.hpp"
#include "supervisor/engine/progress.hpp"
#include "supervisor/engine/report.hpp"
#include "supervisor/engine/run_facts.hpp"
#include "supervisor/engine/run_phase.hpp"
#include "supervisor/processes/process_table.hpp"
#include "supervisor/processes/seat_commands.hpp"
#include "supervisor/processes/standby.hpp"
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

}  // namespace

run_rebuild::run_rebuild(const run_setup& setup, std::string run_id, std::string helpers, event_loop& loop,
                         process_table& seats, memory_store& memory, block_custodian& block, run_phase& phase,
                         stall_guard& stall, problems& problems, run_facts& facts)
    : setup_(&setup),
      run_id_(std::move(run_id)),
      helpers_(std::move(helpers)),
      loop_(&loop),
      seats_(&seats),
      memory_(&memory),
      block_(&block),
      phase_(&phase),
      stall_(&stall),
      problems_(&problems),
      facts_(&facts) {}

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
/// again, this is the first of them, so they are delivered again.
u64 run_rebuild::first_trusted() const {
    return is_sent_its_frames(*setup_) ? first_to_deliver() : first_uncertain();
}

/// Returns the first uncertain frame. Frames that were in flight since the last check that found the block
/// sound may have been made from damaged words, and may have been delivered. The same holds for earlier
/// frames: for as many frames as the windows of all rings contain, but only for frames of which the ledgers
/// still have individual records (ledger_fold.hpp).
u64 run_rebuild::first_uncertain() const {
    const u64 lacking = first_to_deliver();
    u64 first = lacking, under_way = 0, folded = 0;
    for (u32 k = 0; k < block_->published().links; ++k) under_way += block_->published().link[k].window;
    for (u32 k = 0; k < block_->published().links; ++k)
        if (block_->saw(k)) first = std::min(first, block_->seen_tail(k));
    for (const stage_setup& st : setup_->stages) {
        if (!counts_frames(st)) continue;
        if (const auto ledger =
                telemetry::ledger_reader::open(telemetry::ledger_path(setup_->directory, st.spec.name)))
            folded = std::max(folded, ledger->summarize(lacking).folded);
    }
    return std::min(std::max(first - std::min(first, under_way), folded), known_end());
}

/// Records the uncertain frames that are not produced again: those below `first` have been delivered, and
/// those below `kept_below` continue from the memory of the rings.
void run_rebuild::record_uncertain_frames(u64 uncertain_from, u64 first, u64 kept_below) {
    if (uncertain_from < first)
        seats_->log_line(
            fmt::format("frames {} to {} were delivered and may be wrong, because words of the control block "
                        "were damaged; "
                        "they can't be repeated, because the host that sent them may no longer have them",
                        uncertain_from, first - 1));
    if (const u64 from = std::max(uncertain_from, first); from < kept_below)
        seats_->log_line(fmt::format(
            "frames {} to {} continue from memory and may be wrong, because words of the control block were "
            "damaged",
            from, kept_below - 1));
    const u64 to = std::max(first, kept_below);
    if (repair_recorded_ && uncertain_from < to) facts_->repairs.last.back().uncertain = {uncertain_from, to};
}

/// True if frames that are in the rings can't be sent again by the host that has sent them.
bool run_rebuild::loses_what_it_drops() const {
    return std::any_of(setup_->stages.begin(), setup_->stages.end(), [&](const stage_setup& st) {
        return st.receives() && !is_sent_durably(setup_->directory, st.spec.name, run_id_);
    });
}

/// The known END, or the plan's END if none is known; frames from this number on do not exist.
u64 run_rebuild::known_end() const {
    return block_->end() == ring::end_stopping ? setup_->end : block_->end();
}

/// Returns the lowest frame that no source has begun, but at least the highest tail that was observed;
/// no_frame if the words that show this frame are damaged.
u64 run_rebuild::first_unbegun() const {
    u64 first = ring::first_unbegun(block_->block()).value_or(telemetry::no_frame);
    for (u32 k = 0; k < block_->published().links; ++k) first = std::max(first, block_->seen_tail(k));
    return first;
}

/// Returns the lowest frame that a sink has claimed but not recorded as committed, even if the block is
/// damaged. The next frame that a sink with `every` takes may be a frame that no source has begun. In this
/// case the result is the lowest frame that was not begun, so that no frame before the sink's next frame is
/// left out. For any other sink the block need not be read, because every frame below the sink's lowest frame
/// of this kind is known to have been begun by a source.
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

// A sink that was ahead of the slowest sink receives the frames from `first` on again. The sink's records of
// these frames are removed, as are records beyond the end.
void run_rebuild::truncate_ledgers(u64 first) {
    for (u32 k = 0; k < setup_->stages.size(); ++k) {
        const stage_setup& st = setup_->stages[k];
        if (!counts_frames(st)) continue;
        const std::string path = telemetry::ledger_path(setup_->directory, st.spec.name);
        const auto ledger = telemetry::ledger_reader::open(path);
        reset_claims(*setup_, k, first);
        if (!ledger) continue;
        if (const u64 size = ledger->size(); block_->end() != ring::end_unknown &&
                                             block_->end() != ring::end_stopping && size > block_->end()) {
            facts_->repairs.beyond_end += size - block_->end();
            seats_->log_line(
                fmt::format("{} has continued beyond the end of the run: its frames {} to {} are removed "
                            "from its account{}",
                            st.spec.name, block_->end(), size - 1,
                            setup_->pictures.empty() ? "" : ", their pictures are in " + setup_->pictures));
        }
        if (::truncate(path.c_str(), static_cast<off_t>(first * sizeof(telemetry::ledger_record))) != 0)
            throw output_error(
                fmt::format("truncating the ledger {} after frame {}: {}", path, first, errno_text(errno)));
    }
}

// Frames that a port has written cannot be requested again, and frames that it has read are in use by its
// program, so a run with a port is not rebuilt. A frame that is missing from every sink is lost, and the
// report counts it. The number of frames written to a ring is read from its block. Since the block may be
// damaged, the number is limited to one window above a known value: the last tail that this supervisor has
// observed, or, right after an adoption, the number in the sinks' ledgers.
void run_rebuild::abandon_rings(const std::string& why, const stage_setup& port) {
    const u64 delivered = first_to_deliver();
    for (u32 k = 0; k < block_->published().links; ++k) {
        const u64 seen = std::max(delivered, block_->seen_tail(k));
        const u64 written =
            block_->published().first_ring_sequence + ring::load(block_->block().link[k].committed);
        phase_->note_lost_until(std::clamp(written, seen, seen + block_->published().link[k].window));
    }
    const std::string lost =
        phase_->lost_until() > delivered
            ? fmt::format("frames {} to {} are lost", delivered, phase_->lost_until() - 1)
            : "no frame was in a ring, so none is lost";
    const std::string text = fmt::format("{}; frames of a pipeline with a port ({}) cannot be made again: {}",
                                         why, port.spec.name, lost);
    seats_->fail("carousel", text, exit_code::stage_failed);
    phase_->end_now(text);
}

const stage_setup* port_of(const run_setup& s) noexcept {
    const auto at = std::find_if(s.stages.begin(), s.stages.end(),
                                 [](const stage_setup& st) { return st.spec.is_port(); });
    return at == s.stages.end() ? nullptr : &*at;
}

const stage_setup* stage_with_state(const run_setup& s) noexcept {
    const auto at =
        std::find_if(s.stages.begin(), s.stages.end(), [](const stage_setup& st) { return st.state; });
    return at == s.stages.end() ? nullptr : &*at;
}

// Frames that are made again need the state before the first of them, which has left its ring.
void run_rebuild::end_without_states(const std::string& why, const stage_setup& stage) {
    const std::string text = fmt::format(
        "{}; the frames from {} on cannot be made again, because stage {} has a state and the one "
        "before that frame is gone",
        why, first_to_deliver(), stage.spec.name);
    seats_->fail("carousel", text, exit_code::stage_failed);
    phase_->end_now(text);
}

void run_rebuild::begin(const std::string& why) {
    if (phase_->is(phase::ending) || phase_->is(phase::rebuilding)) return;
    if (const stage_setup* port = port_of(*setup_)) return abandon_rings(why, *port);
    if (const stage_setup* stage = stage_with_state(*setup_)) return end_without_states(why, *stage);
    if (memory_->owner_pidfd() >= 0) loop_->forget(memory_->owner_pidfd());
    seats_->log_line(fmt::format("{}: the run restarts at frame {}", why,
                                 untrusted_ ? first_trusted() : first_to_deliver()));
    phase_->begin_rebuild();
    supervisor::pause_all(*seats_);
}

void run_rebuild::finish() {
    const u64 now = now_ns(), next_source = ring::load(block_->block().next_source_ns);
    const u64 step = setup_->fps > 0 ? static_cast<u64>(1e9 / setup_->fps) : 0;
    const bool end_is_fixed =
        facts_->end_requested && block_->end() != ring::end_stopping && block_->end() != ring::end_unknown;
    try {
        // All processes are gone, so one check is exact. It finds damage that no check has confirmed yet, and
        // the damage for which a supervisor that has died began this rebuild.
        untrusted_ = untrusted_ || !block_->persistent_damage().empty();
        const u64 first = untrusted_ ? first_trusted() : first_to_deliver();
        const u64 uncertain_from = untrusted_ ? first_uncertain() : telemetry::no_frame;
        truncate_ledgers(first);
        memory_->remake(helpers_);
        shm::segment::remove(run_id_);
        // Frames of a damaged block may be wrong although each of them is proved, so they are made again if
        // that is possible.
        const bool keep = !untrusted_ || loses_what_it_drops();
        const kept_in_rings kept = block_->make(first, known_end(), untrusted_, keep);
        if (kept.count > 0)
            seats_->log_line(fmt::format("{} frames in the rings continue from memory", kept.count));
        if (untrusted_) record_uncertain_frames(uncertain_from, first, kept.count > 0 ? kept.below : first);
    } catch (const error& e) {
        seats_->log_line(fmt::format("the rebuild failed: {}", e.what()));
        seats_->fail("carousel-alloc", e.what(), e.code());
        return phase_->abandon_rebuild();
    }
    block_->block().next_source_ns.store(next_source <= now + 2 * step ? next_source : now,
                                         std::memory_order_relaxed);
    block_->set_end(known_end());
    block_->begin_checks_again();
    stall_->restart(now);
    watch_owner();
    phase_->end_rebuild();
    seats_->attach_to(block_->block(), *memory_, &block_->published());
    supervisor::resume_all(*seats_, untrusted_);
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
