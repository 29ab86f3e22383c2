// engine: rebuilding memory and words during a run. Memory of kind ipc belongs to a process: when that dies,
// running stages continue, but no successor could map it. Or the control block is damaged (damage.cpp). All
// stages end, and the run continues at the first frame that a sink lacks. The authoritative data are the
// sinks' ledgers and this process's own memory: the old block may be the broken part, so only counters are
// taken from it, and those only if plausible.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "ledger/frame_claims.hpp"
#include "ledger/ledger_fold.hpp"
#include "supervisor/engine/engine.hpp"
#include "supervisor/processes/seat_commands.hpp"
#include "supervisor/processes/standby.hpp"

namespace carousel::supervisor {
namespace {

/// True if another host sends the frames: it may have released frames that all sinks here have, and cannot
/// send those again. A stage that receives is known by its own description; its program may be a wrapper.
bool is_sent_its_frames(const run_setup& s) {
    return std::any_of(s.stages.begin(), s.stages.end(), [](const stage_setup& st) { return st.receives(); });
}

}  // namespace

void engine::watch_owner() {
    if (memory_.owner_pidfd() < 0) return;
    loop_.watch(memory_.owner_pidfd(), EPOLLIN, [this](u32) {
        if (phase_ == phase::leaving) return loop_.forget(memory_.owner_pidfd());
        rebuild(
            fmt::format("the owner of the rings' memory (carousel-alloc, pid {}) has died: new processes "
                        "can't map the rings",
                        memory_.owner_pid()));
    });
}

/// The frame at which a run with a damaged block continues: uncertain frames are delivered again, if they can
/// be made again.
u64 engine::first_trusted() const {
    return is_sent_its_frames(*setup_) ? first_to_deliver() : first_uncertain();
}

/// Frames in flight since the last check that found the block sound may have been made from damaged words and
/// delivered. So may a window of frames per ring before them, as far back as the ledgers still have
/// individual records (ledger_fold.hpp).
u64 engine::first_uncertain() const {
    const u64 lacking = first_to_deliver();
    u64 first = lacking, under_way = 0, folded = 0;
    for (u32 k = 0; k < made_->links; ++k) under_way += made_->link[k].window;
    for (u32 k = 0; k < std::min<std::size_t>(seen_tails_.size(), made_->links); ++k)
        first = std::min(first, seen_tails_[k]);
    for (const stage_setup& st : setup_->stages) {
        if (!counts_frames(st)) continue;
        if (const auto ledger =
                telemetry::ledger_reader::open(telemetry::ledger_path(setup_->directory, st.spec.name)))
            folded = std::max(folded, ledger->summarize(lacking).folded);
    }
    return std::max(first - std::min(first, under_way), folded);
}

/// Before the run continues at `first`: records the uncertain frames that are not made again.
void engine::record_uncertain_frames(u64 first) {
    const u64 uncertain_from = first_uncertain();
    if (uncertain_from >= first) return;
    seats_->log_line(
        fmt::format("frames {} to {} were delivered, may come from damaged words, and can't be repeated: the "
                    "host that sent them may no longer have them",
                    uncertain_from, first - 1));
    if (repair_recorded_) repairs_.last.back().uncertain = {uncertain_from, first};
}

/// The lowest frame that a sink has a claim on and no committed record of, whatever the block contains.
u64 engine::first_to_deliver() const {
    std::vector<telemetry::counted_sink> sinks;
    for (u32 k = 0; k < setup_->stages.size(); ++k) {
        if (!counts_frames(setup_->stages[k])) continue;
        // Without a ledger: the tail of its ring at the last check.
        u64 tail = made_->first_ring_sequence;
        if (const u32 link = made_->stage[k].input_link[0]; link < seen_tails_.size())
            tail = std::max(tail, seen_tails_[link]);
        sinks.push_back({setup_->stages[k].spec.name, tail});
    }
    u64 lowest = telemetry::find_undelivered(setup_->directory, sinks, 0).frame;
    if (lowest == telemetry::no_frame) {  // no sink has a claim: up to where all rings were
        for (u32 k = 0; k < made_->links; ++k)
            lowest = std::min(lowest, k < seen_tails_.size() ? seen_tails_[k] : made_->first_ring_sequence);
        lowest = std::max(lowest, made_->first_ring_sequence);
    }
    return std::min(lowest, end_ == ring::end_stopping ? setup_->end : end_);
}

/// For a run that continues a lost one: frames that the lost run delivered are neither lost nor counted here.
void engine::begin_ledgers() const {
    if (first_ == 0) return;
    for (const stage_setup& st : setup_->stages)
        if (counts_frames(st))
            telemetry::begin_ledger(telemetry::ledger_path(setup_->directory, st.spec.name), first_);
}

// A sink that was ahead of the slowest gets those frames again: its records of them are removed, as are
// records beyond the end.
void engine::truncate_ledgers(u64 first) {
    for (u32 k = 0; k < setup_->stages.size(); ++k) {
        const stage_setup& st = setup_->stages[k];
        if (!counts_frames(st)) continue;
        const std::string path = telemetry::ledger_path(setup_->directory, st.spec.name);
        const auto ledger = telemetry::ledger_reader::open(path);
        reset_claims(*setup_, k, first);
        if (!ledger) continue;
        if (const u64 size = ledger->size();
            end_ != ring::end_unknown && end_ != ring::end_stopping && size > end_) {
            repairs_.beyond_end += size - end_;
            seats_->log_line(
                fmt::format("{} has continued beyond the end of the run: its frames {} to {} are removed "
                            "from its account{}",
                            st.spec.name, end_, size - 1,
                            setup_->pictures.empty() ? "" : ", their pictures are in " + setup_->pictures));
        }
        if (::truncate(path.c_str(), static_cast<off_t>(first * sizeof(telemetry::ledger_record))) != 0)
            throw output_error(
                fmt::format("truncating the ledger {} after frame {}: {}", path, first, errno_text(errno)));
    }
}

// Frames that a port has written cannot be requested again, and frames that it has read belong to it: a run
// with a port is not rebuilt. Frames that no sink has are lost, and the report counts them. The number of
// frames written to a ring comes from its block, limited to a window above what is known otherwise: the tail
// that this supervisor has seen, or, right after an adoption, what the sinks' ledgers have.
void engine::abandon_rings(const std::string& why, const stage_setup& port) {
    const u64 delivered = first_to_deliver();
    for (u32 k = 0; k < made_->links; ++k) {
        const u64 seen = std::max(delivered, k < seen_tails_.size() ? seen_tails_[k] : 0);
        const u64 written = made_->first_ring_sequence + ring::load(segment_->block().link[k].committed);
        lost_until_ = std::max(lost_until_, std::clamp(written, seen, seen + made_->link[k].window));
    }
    const std::string lost = lost_until_ > delivered
                                 ? fmt::format("frames {} to {} are lost", delivered, lost_until_ - 1)
                                 : "no frame was in a ring, so none is lost";
    const std::string text = fmt::format("{}; frames of a pipeline with a port ({}) cannot be made again: {}",
                                         why, port.spec.name, lost);
    seats_->fail("carousel", text, exit_code::stage_failed);
    end_now(text);
}

const stage_setup* port_of(const run_setup& s) noexcept {
    const auto at = std::find_if(s.stages.begin(), s.stages.end(),
                                 [](const stage_setup& st) { return st.spec.is_port(); });
    return at == s.stages.end() ? nullptr : &*at;
}

void engine::rebuild(const std::string& why) {
    if (phase_ == phase::ending || phase_ == phase::rebuilding) return;
    if (const stage_setup* port = port_of(*setup_)) return abandon_rings(why, *port);
    if (memory_.owner_pidfd() >= 0) loop_.forget(memory_.owner_pidfd());
    seats_->log_line(fmt::format("{}: the run restarts at frame {}", why,
                                 untrusted_ ? first_trusted() : first_to_deliver()));
    phase_ = phase::rebuilding;
    phase_since_ns_ = now_ns();
    finished_ns_ = 0;
    ++rebuilds_;
    supervisor::pause_all(*seats_);
}

void engine::finish_rebuild() {
    const u64 now = now_ns(), next_source = ring::load(segment_->block().next_source_ns);
    const u64 step = setup_->fps > 0 ? static_cast<u64>(1e9 / setup_->fps) : 0;
    const bool end_is_fixed = end_requested_ && end_ != ring::end_stopping && end_ != ring::end_unknown;
    try {
        const u64 first = untrusted_ ? first_trusted() : first_to_deliver();
        if (untrusted_) record_uncertain_frames(first);
        truncate_ledgers(first);
        memory_.remake(helpers_);
        shm::segment::remove(run_id_);
        make_block(first, end_ == ring::end_stopping ? setup_->end : end_);
    } catch (const error& e) {
        seats_->log_line(fmt::format("the rebuild failed: {}", e.what()));
        seats_->fail("carousel-alloc", e.what(), e.code());
        phase_ = phase::ending;
        phase_since_ns_ = now_ns();
        supervisor::no_more_starts(*seats_);
        return;
    }
    segment_->block().next_source_ns.store(next_source <= now + 2 * step ? next_source : now,
                                           std::memory_order_relaxed);
    set_end(end_ == ring::end_stopping ? setup_->end : end_);
    stop_requested_ = false;
    deaths_then_ = seats_->account.deaths;
    seen_tails_.clear();
    stall_.restart(now);
    watch_owner();
    phase_ = phase::running;
    seats_->attach_to(segment_->block(), memory_, made_.get());
    supervisor::resume_all(*seats_, untrusted_);
    untrusted_ = false;
    if (end_is_fixed) {
        phase_ = phase::draining;
        phase_since_ns_ = moved_ns_ = now_ns();
    } else if (end_requested_) {
        begin_drain("continuing with the end of the run");
    }
}

}  // namespace carousel::supervisor
